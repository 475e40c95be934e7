package plan_test

const (
	message404      = "Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found"
	messageChecksum = "Unable to process data: Unable to transfer source data to scratch space: checksum validation failed: checksum mismatch: expected md5:00, calculated md5:11"
)
