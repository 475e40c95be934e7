package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// request is a line of the log; the answer comes 2 ms later.
func request(agent, call, name string, after time.Duration, code int) string {
	verb, resource, _ := strings.Cut(call, " ")
	resource, subresource, _ := strings.Cut(resource, "/")
	began := noon.Add(after)
	return fmt.Sprintf(`{"kind":"Event","stage":"ResponseComplete","verb":%q,"userAgent":%q,`+
		`"objectRef":{"resource":%q,"subresource":%q,"name":%q,"namespace":"bench-0"},"responseStatus":{"metadata":{},"code":%d},`+
		`"requestReceivedTimestamp":%q,"stageTimestamp":%q}`+"\n", verb, agent, resource, subresource, name, code,
		began.Format("2006-01-02T15:04:05.000000Z"), began.Add(2*time.Millisecond).Format("2006-01-02T15:04:05.000000Z"))
}

func TestCount(t *testing.T) {
	const us = "disk-sync-operator"
	log := request(us, "list vmdiskimages", "", -time.Second, 200) + // before the load
		request(us, "patch vmdiskimages/status", "a", 0, 200) +
		request(us, "create datavolumes", "a", time.Second, 201) +
		request(us, "update leases", "disk-sync-slot-0", time.Second, 409) +
		request(us+"/leader-election", "update leases", us, time.Second, 200) +
		request(us, "create events", "a.1", time.Second, 201) +
		request(us, "create events", us+".1", time.Second, 201) +
		request(us, "get datavolumes", "a", time.Second, 200) +
		request(us, "watch datavolumes", "", time.Second, 200) +
		request("floor", "create datavolumes", "b", time.Second, 201) +
		request(us, "patch vmdiskimages/status", "a", time.Minute, 200) + // after it
		`{"kind":"Event","stage":"ResponseCom`
	entries, err := parse(strings.NewReader(log))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		window Window
		want   Count
	}{
		"the load": {
			window: Window{Agent: us, From: noon, To: noon.Add(time.Minute), LeaderLease: us},
			want:   Count{Writes: 3, Failed: 1, Events: 1, Reads: 1, Leader: 2},
		},
		"an open end": {window: Window{Agent: us, From: noon.Add(2 * time.Second), LeaderLease: us}, want: Count{Writes: 1}},
		"one resource, with its subresources": {
			window: Window{Agent: us, From: noon, To: noon.Add(time.Minute), LeaderLease: us}.Of("vmdiskimages"), want: Count{Writes: 1},
		},
		"another agent": {window: Window{Agent: "floor", LeaderLease: us}, want: Count{Writes: 1}},
		"the slots' Leases are not the leader's": {
			window: Window{Agent: us, From: noon, To: noon.Add(time.Minute), LeaderLease: "another"}, want: Count{Writes: 4, Failed: 1, Events: 2, Reads: 1},
		},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.window.Count(entries)) })
	}
}

func TestALineThatIsNoRequestIsAnError(t *testing.T) {
	_, err := parse(strings.NewReader("{\n"))
	assert.ErrorContains(t, err, "line 1")
}

func TestLatencies(t *testing.T) {
	entries, err := parse(strings.NewReader(request("x", "create datavolumes", "a", 0, 201) + request("x", "create datavolumes", "b", time.Second, 201)))
	require.NoError(t, err)
	assert.Equal(t, []Latency{{Agent: "x", Verb: "create", Resource: "datavolumes", Requests: 2, Median: 2, P99: 2, Sum: 4}},
		Latencies(entries, noon, noon.Add(time.Minute)))
}
