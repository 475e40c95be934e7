package lab

import (
	"maps"
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/invariant"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// size of images, so large that a dropped download is not taken for a whole one.
const size = 512 << 10

// Words in a URL that decide how it goes.
const (
	// firstFails makes the first attempt fail, by a connection that breaks.
	firstFails = "first-fails"
	// stays never comes to the end of its download.
	stays = "stays"
)

// nowhere is a server that is not there: imports that are played without a download do not ask it.
const nowhere = "http://images.test/"

// Behaviour of attempts in the stories: the URL decides.
func Behaviour(dv *cdiv1.DataVolume) cdi.Behaviour {
	if dv.Spec.Source == nil || dv.Spec.Source.HTTP == nil {
		return cdi.Behaviour{}
	}
	url := dv.Spec.Source.HTTP.URL
	switch {
	case strings.Contains(url, firstFails) && dv.Annotations[otv1alpha1.AnnotationAttempt] == "1":
		return cdi.Behaviour{Fail: "Unable to connect to http data source: unexpected EOF"}
	case strings.HasPrefix(url, nowhere+"status/404"):
		return cdi.Behaviour{Fail: "Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found"}
	case strings.HasPrefix(url, nowhere+stays):
		return cdi.Behaviour{StopAt: cdiv1.ImportInProgress}
	}
	return cdi.Behaviour{}
}

// url of a story's image: %s is its namespace, and a path is one of the test's own server.
func (s *Scene) url(url string) string {
	url = strings.ReplaceAll(url, "%s", s.Namespace)
	if strings.HasPrefix(url, "/") {
		return s.Sim.Images.URL(url)
	}
	return url
}

// Serve makes a file of its own available and gives its path and its checksum.
func (w *World) Serve(name string) (path, checksum string) {
	disk := diskimage.Raw(size, int64(len(name)))
	w.Sim.Images.Add(name, disk.Bytes)
	return "/ok/" + name, "sha256:" + disk.SHA256()
}

// BasePolicy of the stories: a retry comes soon, though not within a second, because status has whole seconds.
func BasePolicy() map[string]string {
	return map[string]string{"concurrency": "2", "retryLimit": "1", "retryBackoffDuration": "50ms"}
}

func merged(base, more map[string]string) map[string]string {
	all := maps.Clone(base)
	maps.Copy(all, more)
	return all
}

// Settings of the checks where the operator is killed now and then: nobody hands out slots until it is back.
func Settings() invariant.Settings {
	return invariant.Settings{Lag: time.Second, Idle: 20 * time.Second, Late: 20 * time.Second, Slack: 50 * time.Millisecond}
}
