package demo

import (
	"embed"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/claims"
	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
	"k8s.io/apimachinery/pkg/types"
)

// manifests are what is applied, but for the addresses of the servers.
//
//go:embed manifests
var manifests embed.FS

// policy is the chart's value: a wait that fits a demonstration, and room for two at first.
const (
	policy          = `policy={"concurrency":2,"retryLimit":2,"retryBackoffDuration":"3s","attemptTimeout":"2m","stallTimeout":"30s"}`
	raisedLimit     = 4
	endedBeforeRise = 4 // images that have ended when the limit is raised

	bucket = "images"
	object = "appliance.img"
)

const (
	mebi = 1 << 20
	gibi = 1 << 30
)

// actor is an image of the demo.
type actor struct {
	namespace, name string
	// path at the image server; empty for what is not downloaded there. How a path misbehaves is in sim/imageserver.
	path   string
	expect claims.Expectation
}

var (
	succeeds = claims.Expectation{Phase: otv1alpha1.PhaseSucceeded, Attempts: 1}
	at2      = claims.Expectation{Phase: otv1alpha1.PhaseSucceeded, Attempts: 2, Reason: otv1alpha1.FailureUnreachable}
)

func fails(reason otv1alpha1.FailureReason, attempts int) claims.Expectation {
	return claims.Expectation{Phase: otv1alpha1.PhaseFailed, Attempts: attempts, Reason: reason}
}

// machines is how many virtual machines there are in manifests/3-machines.yaml.
const machines = 3

// cast lists the images in the order of manifests/2-images.yaml, and then the one that is made of a template in 3-machines.yaml.
func cast() []actor {
	return []actor{
		{"lab-a", "ubuntu", "/slow/1500000/ubuntu.qcow2", succeeds},
		{"lab-b", "debian", "/slow/1500000/debian.qcow2", succeeds},
		{"lab-a", "missing", "/status/404/missing.qcow2", fails(otv1alpha1.FailureSourceNotFound, 3)},
		{"lab-b", "truncated", "/short/1500000/truncated.qcow2", fails(otv1alpha1.FailureChecksumMismatch, 1)},
		{"lab-a", "flaky", "/failfirst/2/flaky.qcow2", at2},
		{"lab-b", "appliance", "", succeeds},
		{"lab-a", "data-disk", "", succeeds},
		{"lab-b", "fedora", "/slow/1500000/fedora.qcow2", succeeds},
		{"lab-a", "windows", "/slow/2500000/windows.qcow2", succeeds},
		{"lab-b", "too-small", "/ok/too-small.qcow2", fails(otv1alpha1.FailureDiskTooSmall, 1)},
		{"lab-a", "rocky", "/slow/1500000/rocky.qcow2", succeeds},
		{"lab-b", "cut-off", "/cut/1000000/cut-off.qcow2", fails(otv1alpha1.FailureUnreachable, 3)},
		{"lab-a", "alpine", "/slow/1500000/alpine.qcow2", succeeds},
	}
}

func (a actor) key() types.NamespacedName {
	return types.NamespacedName{Namespace: a.namespace, Name: a.name}
}

func expected() map[types.NamespacedName]claims.Expectation {
	all := map[types.NamespacedName]claims.Expectation{}
	for _, a := range cast() {
		all[a.key()] = a.expect
	}
	return all
}

// files are served by name. Their content depends on nothing, so that checksums can stand in the manifests.
func files() map[string]diskimage.Image {
	return map[string]diskimage.Image{
		"ubuntu.qcow2":    diskimage.QCOW2(gibi, 8*mebi, 1),
		"debian.qcow2":    diskimage.QCOW2(gibi, 5*mebi, 2),
		"truncated.qcow2": diskimage.QCOW2(gibi, 3*mebi, 3),
		"flaky.qcow2":     diskimage.QCOW2(gibi, 3*mebi, 4),
		object:            diskimage.Raw(4*mebi, 5),
		"fedora.qcow2":    diskimage.QCOW2(gibi, 7*mebi, 6),
		"windows.qcow2":   diskimage.QCOW2(2*gibi, 16*mebi, 7),
		"too-small.qcow2": diskimage.QCOW2(4*gibi, 2*mebi, 8),
		"rocky.qcow2":     diskimage.QCOW2(gibi, 6*mebi, 9),
		"cut-off.qcow2":   diskimage.QCOW2(gibi, 4*mebi, 10),

		"ubuntu-next.qcow2": diskimage.QCOW2(gibi, 5*mebi, 11),
		"desktop.qcow2":     diskimage.QCOW2(gibi, 5*mebi, 12),
		"alpine.qcow2":      diskimage.QCOW2(gibi, 5*mebi, 13),
		"postgres.qcow2":    diskimage.QCOW2(gibi, 5*mebi, 14),
		"notebook.qcow2":    diskimage.QCOW2(gibi, 5*mebi, 15),
	}
}

// fill puts what is known only at run time into a manifest: ${NAME}.
func fill(manifest string, values map[string]string) string {
	for name, value := range values {
		manifest = strings.ReplaceAll(manifest, "${"+name+"}", value)
	}
	return manifest
}
