// Package demo shows the operators at work and checks what it shows: a dozen images of two namespaces go through one queue
// while people watch, virtual machines wait for theirs and start, some of all this is changed or lost afterwards, a workspace of
// virtual machines and a container comes and goes, and every claim about it is checked in the end, on the recorded history.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/demo/claims"
	"github.com/pelotech/open-terrain/e2e/demo/screen"
	"github.com/pelotech/open-terrain/e2e/demo/stage"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// playTimeout is far more than the images need, also on a machine that has other things to do.
	playTimeout  = 8 * time.Minute
	drainTimeout = 30 * time.Second
)

// Options of Run.
type Options struct {
	Screen *screen.Screen
	// Keep leaves everything running after the summary, until ctx is done.
	Keep bool
	// Dir keeps logs and manifests, and is left behind; empty means a temporary folder that is removed.
	Dir string
}

// Run brings everything up, plays the demo, checks the claims and ends everything. The verdicts are complete when there
// is no error.
func Run(ctx context.Context, o Options) (verdicts []claims.Verdict, err error) {
	s, err := stage.Start(ctx, stage.Options{Policy: policy, Dir: o.Dir, Say: o.Screen.Say})
	if err != nil {
		return nil, err
	}
	defer func() {
		o.Screen.Leave()
		o.Screen.Say("\nEnding all processes ...")
		err = errors.Join(err, s.Stop())
	}()
	played, err := play(ctx, s, o.Screen)
	if err != nil {
		return nil, err
	}
	verdicts = append(claims.Whole(played.first, played.whole, played.life), claims.OfWorkspace(played.space, lesson)...)
	summarize(o.Screen, played.first, verdicts)
	if o.Keep {
		keep(ctx, s, o.Screen)
	}
	return verdicts, nil
}

// acts are what was played: up to the images' first ends, with what became of them later, and with the workspace at the end.
type acts struct {
	first, whole, space claims.Run
	life                claims.Life
}

// play lets the images come to their ends, changes some of them, and has a workspace come and go.
func play(ctx context.Context, s *stage.Stage, out *screen.Screen) (played acts, err error) {
	folder, err := prepare(s)
	if err != nil {
		return played, err
	}
	ctx, cancel := context.WithTimeout(ctx, playTimeout)
	defer cancel()
	w := newWatcher(s.History, out)
	if played.first, err = queue(ctx, s, out, w, folder); err != nil {
		return played, err
	}
	if played.life, err = later(ctx, s, out, w, filepath.Join(folder, "later")); err != nil {
		return played, err
	}
	if played.whole, err = taken(ctx, s, out); err != nil {
		return played, err
	}
	played.space, err = workspace(ctx, s, out, w, folder)
	return played, err
}

// taken is the run so far.
func taken(ctx context.Context, s *stage.Stage, out *screen.Screen) (claims.Run, error) {
	out.Leave()
	if _, err := s.History.Sync(ctx); err != nil {
		return claims.Run{}, err
	}
	return claims.Run{Events: s.History.All(), Expected: expected(), Counted: count(s)}, nil
}

// queue applies the images, watches them to their ends and raises the limit on the way.
func queue(ctx context.Context, s *stage.Stage, out *screen.Screen, w *watcher, folder string) (claims.Run, error) {
	out.Say("\nThe limit is 2 at once. Twelve images for two namespaces, and three virtual machines that will need theirs\n(e2e/demo/manifests, with the servers' addresses):\n")
	if err := kubectl(ctx, s, out, "apply", "-f", folder); err != nil {
		return claims.Run{}, err
	}
	out.Say("")
	if err := w.until(ctx, func() bool { return w.ended() >= endedBeforeRise }); err != nil {
		return claims.Run{}, err
	}
	out.Say("\nNow the limit is raised, while they sync; the operator is not restarted:\n")
	patch := fmt.Sprintf(`{"data":{"concurrency":"%d"}}`, raisedLimit)
	if err := kubectl(ctx, s, out, "-n", chart.Namespace, "patch", "configmap", otv1alpha1.PolicyConfigMapName, "--type=merge", "-p", patch); err != nil {
		return claims.Run{}, err
	}
	out.Say("")
	if err := w.until(ctx, func() bool { return w.ended() == len(cast()) && w.ready() == machines }); err != nil {
		return claims.Run{}, err
	}
	// The slots of the last ones are given up after their ends.
	drain, cancelDrain := context.WithTimeout(ctx, drainTimeout)
	defer cancelDrain()
	if err := w.until(drain, func() bool { return w.ledger.Held() == 0 }); err != nil && ctx.Err() != nil {
		return claims.Run{}, err // otherwise a claim will say it
	}
	return taken(ctx, s, out)
}

// prepare fills the servers and writes the manifests with their addresses.
func prepare(s *stage.Stage) (folder string, err error) {
	for name, image := range files() {
		if name == object {
			err = s.Bucket.Put(bucket, object, image.Bytes)
		} else {
			s.Images.Add(name, image.Bytes)
		}
		if err != nil {
			return "", err
		}
	}
	accessKey, secretKey := s.Bucket.Keys()
	values := map[string]string{
		"IMAGES":     strings.TrimSuffix(s.Images.URL(""), "/"),
		"BUCKET":     strings.TrimSuffix(s.Bucket.URL(bucket, object), "/"+bucket+"/"+object),
		"ACCESS_KEY": accessKey, "SECRET_KEY": secretKey,
	}
	folder = filepath.Join(s.Cluster.Dir, "manifests")
	return folder, fs.WalkDir(manifests, "manifests", func(path string, entry fs.DirEntry, err error) error {
		target := filepath.Join(s.Cluster.Dir, filepath.FromSlash(path))
		if err != nil || entry.IsDir() {
			return errors.Join(err, os.MkdirAll(target, 0o700))
		}
		manifest, err := manifests.ReadFile(path)
		return errors.Join(err, os.WriteFile(target, []byte(fill(string(manifest), values)), 0o600))
	})
}

// count asks the servers what they have sent.
func count(s *stage.Stage) map[types.NamespacedName]claims.Count {
	counted, all := map[types.NamespacedName]claims.Count{}, files()
	for _, a := range cast() {
		if a.path != "" {
			stats := s.Images.Of(a.path)
			size := len(all[a.path[strings.LastIndex(a.path, "/")+1:]].Bytes)
			counted[a.key()] = claims.Count{Gets: stats.PlainGets, Whole: stats.Complete, Bytes: stats.Bytes, Size: int64(size)}
		}
	}
	stats := s.Bucket.Of(bucket, object)
	counted[types.NamespacedName{Namespace: "lab-b", Name: "appliance"}] = claims.Count{
		Gets: stats.Gets, Whole: stats.Complete, Bytes: stats.Bytes, Size: int64(len(all[object].Bytes)),
	}
	return counted
}
