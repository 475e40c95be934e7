// Package audit counts requests from the API server's audit log, by user agent.
package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Entry is one request that was answered.
type Entry struct {
	Agent string
	Verb  string
	// Resource with its subresource, for example vmdiskimages/status.
	Resource string
	Name     string
	Code     int32
	// Began and Ended are the API server's.
	Began, Ended time.Time
}

// line is what is needed of the API server's format.
type line struct {
	Stage     string
	Verb      string
	UserAgent string
	ObjectRef *struct{ Resource, Subresource, Name string }

	ResponseStatus           *struct{ Code int32 }
	RequestReceivedTimestamp metav1.MicroTime
	StageTimestamp           metav1.MicroTime
}

// Read returns the requests of a file that ended, in the order of their end. Watches end late and are left out.
func Read(path string) ([]Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := parse(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return entries, nil
}

func parse(r io.Reader) ([]Entry, error) {
	var entries []Entry
	reader := bufio.NewReaderSize(r, 1<<20)
	for {
		raw, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return entries, nil // a last line without its end is still being written
		}
		if err != nil {
			return nil, err
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(entries)+1, err)
		}
		if l.Stage != "ResponseComplete" || l.Verb == "watch" || l.ObjectRef == nil {
			continue
		}
		entries = append(entries, l.entry())
	}
}

func (l line) entry() Entry {
	e := Entry{
		Agent: l.UserAgent, Verb: l.Verb, Resource: l.ObjectRef.Resource, Name: l.ObjectRef.Name,
		Began: l.RequestReceivedTimestamp.Time, Ended: l.StageTimestamp.Time,
	}
	if l.ObjectRef.Subresource != "" {
		e.Resource += "/" + l.ObjectRef.Subresource
	}
	if l.ResponseStatus != nil {
		e.Code = l.ResponseStatus.Code
	}
	return e
}

// Window is a user agent's requests in a span of time; a zero end is open.
type Window struct {
	// Agent is the beginning of the user agent.
	Agent string
	From  time.Time
	To    time.Time
	// Resource is the one that counts, with its subresources; all when it is empty.
	Resource string
	// LeaderLease is the name of the Lease of the leader election, whose requests and events are counted apart.
	LeaderLease string
}

// Count is how many requests of each kind there were, failed ones included.
type Count struct {
	// Writes of objects: slots' Leases are among them; events and the leader's Lease are not.
	Writes int `json:"writes"`
	// Failed are the Writes that were refused, conflicts for example.
	Failed int `json:"failedWrites"`
	// Events are the calls that make or change events.
	Events int `json:"eventCalls"`
	// Reads are gets and lists, without those of the leader's Lease.
	Reads int `json:"reads"`
	// Leader are all requests for the leader's Lease, and the event of its change.
	Leader int `json:"leaderLease"`
}

// Of is the window for one resource only.
func (w Window) Of(resource string) Window {
	w.Resource = resource
	return w
}

// Matches says whether the window contains the request.
func (w Window) Matches(e Entry) bool {
	resource, _, _ := strings.Cut(e.Resource, "/")
	return strings.HasPrefix(e.Agent, w.Agent) && (w.Resource == "" || w.Resource == resource) && !e.Began.Before(w.From) && (w.To.IsZero() || e.Began.Before(w.To))
}

// Count the requests of a window.
func (w Window) Count(entries []Entry) Count {
	var c Count
	for _, e := range entries {
		if !w.Matches(e) {
			continue
		}
		write := e.Verb != "get" && e.Verb != "list"
		switch {
		case e.Resource == "leases" && e.Name == w.LeaderLease, e.Resource == "events" && strings.HasPrefix(e.Name, w.LeaderLease+"."):
			c.Leader++
		case e.Resource == "events":
			c.Events++
		case !write:
			c.Reads++
		default:
			c.Writes++
			if e.Code >= 400 {
				c.Failed++
			}
		}
	}
	return c
}

// Began is when the first request of a window began; zero when there is none.
func (w Window) Began(entries []Entry) time.Time {
	var first time.Time
	for _, e := range entries {
		if w.Matches(e) && (first.IsZero() || e.Began.Before(first)) {
			first = e.Began
		}
	}
	return first
}

// Made is when the last request of a window ended that made an object; events and Leases do not count.
func (w Window) Made(entries []Entry) time.Time {
	var last time.Time
	for _, e := range entries {
		if w.Matches(e) && e.Code == http.StatusCreated && e.Resource != "events" && e.Resource != "leases" && e.Resource != "secrets" && e.Ended.After(last) {
			last = e.Ended
		}
	}
	return last
}
