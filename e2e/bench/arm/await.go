package arm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watch is the stream of changes of all objects, unread: decoding them all would cost more than the floor does.
func (l *Lab) watch(ctx context.Context, from string) (io.ReadCloser, error) {
	config := rest.CopyConfig(l.cluster.Config)
	config.UserAgent = "bench"
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	path := server.JoinPath(l.task.path()).String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path+"?watch=1&timeoutSeconds=36000&resourceVersion="+from, nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("watch the objects: %s", response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// await returns when so many objects are done. The API server drops watchers that are slow for a moment: then the objects
// are listed once, and watched again.
func (l *Lab) await(ctx context.Context, stream io.ReadCloser, prefix string, objects int) error {
	finished := map[string]bool{}
	for {
		err := l.read(stream, objects, finished)
		stream.Close()
		if len(finished) == objects || ctx.Err() != nil || !errors.Is(err, io.EOF) {
			return err
		}
		list := l.task.list()
		if err := l.client.List(ctx, list); err != nil {
			return err
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if object := item.(client.Object); l.task.isDone(prefix, object) {
				finished[string(object.GetUID())] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
		if stream, err = l.watch(ctx, list.GetResourceVersion()); err != nil {
			return err
		}
	}
}

// read a stream until it ends or so many different objects are done.
func (l *Lab) read(stream io.Reader, objects int, finished map[string]bool) error {
	lines, done := bufio.NewReaderSize(stream, 1<<20), []byte(l.task.done())
	for len(finished) < objects {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%d of %d objects are done: %w", len(finished), objects, err)
		}
		if !bytes.Contains(line, done) {
			continue
		}
		var change struct{ Object metav1.PartialObjectMetadata }
		if err := json.Unmarshal(line, &change); err != nil {
			return err
		}
		finished[string(change.Object.UID)] = true
	}
	return nil
}
