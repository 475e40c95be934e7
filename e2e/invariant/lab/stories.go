package lab

import (
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/pelotech/open-terrain/e2e/invariant"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// size of images, so large that a dropped download is not taken for a whole one.
const size = 512 << 10

// firstFails in an image's URL makes its first attempt fail, by a connection that breaks.
const firstFails = "first-fails"

// Behaviour of attempts in the stories: the URL decides.
func Behaviour(dv *cdiv1.DataVolume) cdi.Behaviour {
	http := dv.Spec.Source.HTTP
	if http != nil && strings.Contains(http.URL, firstFails) && dv.Annotations[otv1alpha1.AnnotationAttempt] == "1" {
		return cdi.Behaviour{Fail: "Unable to connect to http data source: unexpected EOF"}
	}
	if http != nil && strings.HasPrefix(http.URL, "http://images.test/status/404") { // no server: an instant import
		return cdi.Behaviour{Fail: "Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found"}
	}
	return cdi.Behaviour{}
}

// Serve makes a file of its own available and gives its path and its checksum.
func (w *World) Serve(name string) (path, checksum string) {
	disk := diskimage.Raw(size, int64(len(name)))
	w.Sim.Images.Add(name, disk.Bytes)
	return "/ok/" + name, "sha256:" + disk.SHA256()
}

// Policy of the stories: a retry comes soon, though not within a second, because status has whole seconds.
func Policy() map[string]string {
	return map[string]string{"concurrency": "2", "retryLimit": "1", "retryBackoffDuration": "50ms"}
}

// Settings of the checks where the operator is killed now and then: nobody hands out slots until it is back.
func Settings() invariant.Settings {
	return invariant.Settings{Lag: time.Second, Idle: 20 * time.Second, Late: 20 * time.Second, Slack: 50 * time.Millisecond}
}

// Stories are the lives that one image may have.
func Stories() []Story {
	download := func(w *World, namespace, name string) *otv1alpha1.VMDiskImage {
		path, checksum := w.Serve(namespace + "-" + name)
		image := Image(namespace, name, w.Sim.Images.URL(path))
		image.Spec.Checksum = checksum
		return image
	}
	return []Story{
		{
			Name: "success", Want: otv1alpha1.PhaseSucceeded, Attempts: 1,
			Image:     func(w *World, namespace string) *otv1alpha1.VMDiskImage { return download(w, namespace, "good") },
			Downloads: func(namespace string) (string, int) { return "/ok/" + namespace + "-good", 1 },
		},
		{
			Name: "retry", Want: otv1alpha1.PhaseSucceeded, Attempts: 2,
			Image:     func(w *World, namespace string) *otv1alpha1.VMDiskImage { return download(w, namespace, firstFails) },
			Downloads: func(namespace string) (string, int) { return "/ok/" + namespace + "-" + firstFails, 1 },
		},
		{
			Name: "not-found", Want: otv1alpha1.PhaseFailed, Attempts: 2,
			Image: func(w *World, namespace string) *otv1alpha1.VMDiskImage {
				return Image(namespace, "gone", w.Sim.Images.URL("/status/404/"+namespace))
			},
		},
		{
			Name: "wrong-checksum", Want: otv1alpha1.PhaseFailed, Attempts: 1,
			Image: func(w *World, namespace string) *otv1alpha1.VMDiskImage {
				image := download(w, namespace, "wrong")
				image.Spec.Checksum = "sha256:" + strings.Repeat("0", 64)
				return image
			},
			Downloads: func(namespace string) (string, int) { return "/ok/" + namespace + "-wrong", 1 },
		},
	}
}

// Faults are the ways in which one write can go wrong.
func Faults() []faultproxy.Rule {
	return []faultproxy.Rule{
		{When: faultproxy.SeverBefore},
		{When: faultproxy.Sever},
		{When: faultproxy.After},
		{When: faultproxy.After, Code: 500},
		{When: faultproxy.Before, Code: 500},
		{When: faultproxy.Before, Code: 409},
	}
}

// Plans are all single faults of a story with that many writes, in an order that is always the same.
func Plans(story string, writes int) []Plan {
	var plans []Plan
	for n := 1; n <= writes; n++ {
		for _, rule := range Faults() {
			rule.Nth = n
			plans = append(plans, Plan{Story: story, Lives: [][]faultproxy.Rule{{rule}}})
		}
	}
	return plans
}
