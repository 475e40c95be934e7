package importer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

var amazonHost = regexp.MustCompile(`s3\.(.+)\.amazonaws\.com`)

// importS3 gets an object, path style, with static keys. A raw disk needs no scratch space; nothing stops a
// download that stalls, and no progress is told.
func importS3(ctx context.Context, r *Request) error {
	endpoint, err := url.Parse(r.URL)
	if err != nil {
		return connectError{SourceS3, fmt.Errorf("unable to parse endpoint %q: %w", r.URL, err)}
	}
	bucket, key, _ := strings.Cut(strings.Trim(endpoint.Path, "/"), "/")
	client, err := r.httpClient()
	if err != nil {
		return connectError{SourceS3, fmt.Errorf("Error creating http client for s3: %w", err)}
	}
	defer client.CloseIdleConnections()
	if r.AccessKey == "" || r.SecretKey == "" {
		return connectError{SourceS3, fmt.Errorf("could not get s3 object: \"%s/%s\": EmptyStaticCreds: static credentials are empty", bucket, key)}
	}
	api := s3.New(s3.Options{
		BaseEndpoint: aws.String(endpoint.Scheme + "://" + endpoint.Host), Region: region(endpoint.Host), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(r.AccessKey, r.SecretKey, ""), HTTPClient: client,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})
	object, err := api.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)})
	if err != nil {
		return connectError{SourceS3, fmt.Errorf("could not get s3 object: \"%s/%s\": %s", bucket, key, oldStyle(err))}
	}
	defer object.Body.Close()
	stream := bufio.NewReaderSize(object.Body, headerSize)
	info, err := peek(stream)
	if err != nil {
		return err
	}
	where := "scratch space"
	if info.Format == "raw" || info.Format == "gz" {
		where = "target file"
	} else if !r.Scratch {
		return errScratchRequired
	}
	if err := r.save(stream, nil); err != nil {
		return fmt.Errorf("Unable to transfer source data to %s: %w", where, err) //nolint:staticcheck // CDI's words
	}
	return r.convert()
}

// region is what CDI makes of the host's name.
func region(host string) string {
	if m := amazonHost.FindStringSubmatch(host); m != nil {
		return m[1]
	}
	return strings.Split(host, ".")[0]
}

// oldStyle words an error as version 1 of Amazon's SDK does, which CDI uses.
func oldStyle(err error) string {
	var api smithy.APIError
	var response *awshttp.ResponseError
	if !errors.As(err, &api) || !errors.As(err, &response) {
		if send, ok := errors.AsType[*smithy.OperationError](err); ok {
			err = send.Err
		}
		return "RequestError: send request failed\ncaused by: " + err.Error()
	}
	return fmt.Sprintf("%s: %s\n\tstatus code: %d, request id: %s, host id: ", api.ErrorCode(), api.ErrorMessage(),
		response.HTTPStatusCode(), response.ServiceRequestID())
}
