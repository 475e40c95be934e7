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
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// watch is the stream of changes of all images, unread: decoding them all would cost more than the floor does.
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
	path := server.JoinPath("apis", otv1alpha1.SchemeGroupVersion.String(), "vmdiskimages").String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path+"?watch=1&timeoutSeconds=36000&resourceVersion="+from, nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("watch the images: %s", response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// await returns when so many images have Succeeded. The API server drops watchers that are slow for a moment: then the
// images are listed once, and watched again.
func (l *Lab) await(ctx context.Context, stream io.ReadCloser, prefix string, images int) error {
	succeeded := map[string]bool{}
	for {
		err := read(stream, images, succeeded)
		stream.Close()
		if len(succeeded) == images || ctx.Err() != nil || !errors.Is(err, io.EOF) {
			return err
		}
		var list otv1alpha1.VMDiskImageList
		if err := l.client.List(ctx, &list); err != nil {
			return err
		}
		for i := range list.Items {
			if image := &list.Items[i]; strings.HasPrefix(image.Name, prefix) && image.Status.Phase == otv1alpha1.PhaseSucceeded {
				succeeded[string(image.UID)] = true
			}
		}
		if stream, err = l.watch(ctx, list.ResourceVersion); err != nil {
			return err
		}
	}
}

// read a stream until it ends or so many different images have Succeeded.
func read(stream io.Reader, images int, succeeded map[string]bool) error {
	lines := bufio.NewReaderSize(stream, 1<<20)
	for len(succeeded) < images {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%d of %d images have Succeeded: %w", len(succeeded), images, err)
		}
		if !bytes.Contains(line, []byte(`"phase":"Succeeded"`)) {
			continue
		}
		var change struct{ Object metav1.PartialObjectMetadata }
		if err := json.Unmarshal(line, &change); err != nil {
			return err
		}
		succeeded[string(change.Object.UID)] = true
	}
	return nil
}
