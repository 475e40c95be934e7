package arm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// Profile drives the load once more, by objects of its own, and writes CPU profiles of the program (the operator only) and
// of the API server into a folder. It is apart from Measure, because a profile costs time.
func (l *Lab) Profile(ctx context.Context, dir string) error {
	if l.isCommand() { // it has no objects for another load
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	api := rest.CopyConfig(l.cluster.Config)
	server, _, err := rest.DefaultServerUrlFor(api)
	if err != nil {
		return err
	}
	authorized, err := rest.HTTPClientFor(api)
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.Go(func() error {
		_, err := l.Drive(ctx, "profiled", l.Load.Units())
		return err
	})
	name := func(program string) string { return filepath.Join(dir, fmt.Sprintf("%s-%s.pprof", l.Name, program)) }
	const path = "debug/pprof/profile"
	all.Go(func() error { return profile(ctx, authorized, server.JoinPath(path).String(), name("apiserver")) })
	if l.subject.profiles != "" {
		all.Go(func() error { return profile(ctx, http.DefaultClient, l.subject.profiles+"/"+path, name("subject")) })
	}
	return all.Wait()
}

// profiled is how long a CPU profile lasts.
const profiled = 10 * time.Second

func profile(ctx context.Context, c *http.Client, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?seconds=%d", url, int(profiled.Seconds())), nil)
	if err != nil {
		return err
	}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}
