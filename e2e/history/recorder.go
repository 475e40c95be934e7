package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options of a recorder.
type Options struct {
	// Endpoint is the URL of etcd.
	Endpoint string
	// Scheme has the kinds to decode into types.
	Scheme *runtime.Scheme
	// After is the revision after which to record; 0 means the current one, 1 everything there ever was.
	After int64
	// Ignore names resources that are not recorded, for example events.
	Ignore []string
}

// Recorder holds the history. It is safe for concurrent use.
type Recorder struct {
	etcd    *clientv3.Client
	decoder decoder
	ignore  []string
	cancel  context.CancelFunc
	ended   chan struct{}
	// watching is the context of the watch: etcd finds the stream to ask for progress by it.
	watching context.Context

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change of the fields below
	base    map[Key]client.Object
	last    map[Key]client.Object
	events  []Event
	seen    int64
	err     error
}

// Start reads the state and records what comes after it, until Stop.
func Start(ctx context.Context, options Options) (*Recorder, error) {
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{options.Endpoint}, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	r := &Recorder{
		etcd: etcd, decoder: newDecoder(options.Scheme), ignore: options.Ignore,
		ended: make(chan struct{}), changed: make(chan struct{}), base: map[Key]client.Object{},
	}
	if err := r.readBase(ctx, options.After); err != nil {
		return nil, errors.Join(err, etcd.Close())
	}
	// Not the caller's context: a test's ends before its clean-up, and the history has to reach that far.
	r.watching, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	changes := etcd.Watch(r.watching, prefix, clientv3.WithPrefix(), clientv3.WithRev(r.seen+1), clientv3.WithFragment())
	go r.record(changes)
	return r, nil
}

func (r *Recorder) readBase(ctx context.Context, after int64) error {
	state, err := r.etcd.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(after))
	if err != nil {
		return fmt.Errorf("read etcd at revision %d: %w", after, err)
	}
	for _, kv := range state.Kvs {
		key := keyOf(string(kv.Key))
		if slices.Contains(r.ignore, key.Resource) {
			continue
		}
		object, _, err := r.decoder.decode(kv.Value, kv.ModRevision)
		if err != nil {
			return fmt.Errorf("%s: %w", kv.Key, err)
		}
		r.base[key] = object
	}
	r.last, r.seen = maps.Clone(r.base), after
	if after == 0 {
		r.seen = state.Header.Revision
	}
	return nil
}

func (r *Recorder) record(changes clientv3.WatchChan) {
	defer close(r.ended)
	for response := range changes {
		if err := r.add(response); err != nil {
			r.fail(err)
			return
		}
	}
	r.fail(errors.New("the recorder was stopped"))
}

func (r *Recorder) add(response clientv3.WatchResponse) error {
	if err := response.Err(); err != nil {
		return fmt.Errorf("the history has a gap after revision %d: %w", r.Revision(), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := time.Now()
	for _, change := range response.Events {
		if err := r.addEvent(change, seen); err != nil {
			return err
		}
	}
	// The header of a response with events may be ahead of them; only a progress notification is a promise.
	if response.IsProgressNotify() {
		r.seen = max(r.seen, response.Header.Revision)
	}
	r.notify()
	return nil
}

func (r *Recorder) addEvent(change *clientv3.Event, seen time.Time) error {
	r.seen = max(r.seen, change.Kv.ModRevision)
	key := keyOf(string(change.Kv.Key))
	if slices.Contains(r.ignore, key.Resource) {
		return nil
	}
	event := Event{Key: key, Revision: change.Kv.ModRevision, Seen: seen, Prev: r.last[key]}
	if change.Type == mvccpb.Event_DELETE {
		event.Deleted = true
		if event.Prev != nil {
			event.Kind = event.Prev.GetObjectKind().GroupVersionKind().Kind
		}
		delete(r.last, key)
	} else {
		object, kind, err := r.decoder.decode(change.Kv.Value, event.Revision)
		if err != nil {
			return fmt.Errorf("%s at revision %d: %w", change.Kv.Key, event.Revision, err)
		}
		event.Object, event.Kind = object, kind
		r.last[key] = object
	}
	r.events = append(r.events, event)
	return nil
}

func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	r.notify()
}

func (r *Recorder) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// Stop ends the recording. What was recorded stays readable.
func (r *Recorder) Stop() error {
	r.cancel()
	<-r.ended
	return r.etcd.Close()
}

// All returns the events so far, in order.
func (r *Recorder) All() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.events)
}

// Revision is the last one that has certainly been recorded.
func (r *Recorder) Revision() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// At returns all objects as they were just after a revision. An object that could not be decoded is nil.
func (r *Recorder) At(revision int64) map[Key]client.Object {
	state := maps.Clone(r.base)
	for _, event := range r.All() {
		if event.Revision > revision {
			break
		}
		if event.Deleted {
			delete(state, event.Key)
		} else {
			state[event.Key] = event.Object
		}
	}
	return state
}

// Wait returns the first event after a revision (0: of all) that matches, recorded already or to come.
func (r *Recorder) Wait(ctx context.Context, after int64, match func(Event) bool) (Event, error) {
	for next := 0; ; {
		r.mu.Lock()
		events, changed, err := slices.Clip(r.events), r.changed, r.err
		r.mu.Unlock()
		for ; next < len(events); next++ {
			if events[next].Revision > after && match(events[next]) {
				return events[next], nil
			}
		}
		if err != nil {
			return Event{}, err
		}
		select {
		case <-ctx.Done():
			return Event{}, fmt.Errorf("no such event among %d: %w", len(events), ctx.Err())
		case <-changed:
		}
	}
}

// Sync returns when everything that etcd had at the time of the call is recorded, and its revision.
func (r *Recorder) Sync(ctx context.Context) (int64, error) {
	current, err := r.etcd.Get(ctx, prefix, clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("ask etcd for its revision: %w", err)
	}
	for {
		r.mu.Lock()
		seen, changed, err := r.seen, r.changed, r.err
		r.mu.Unlock()
		switch {
		case seen >= current.Header.Revision:
			return current.Header.Revision, nil
		case err != nil:
			return 0, err
		}
		// The last revisions may be outside our keys, so that no event of ours will ever carry them.
		if err := r.etcd.RequestProgress(r.watching); err != nil {
			return 0, fmt.Errorf("ask etcd for progress: %w", err)
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("recorded up to %d of %d: %w", seen, current.Header.Revision, ctx.Err())
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		}
	}
}
