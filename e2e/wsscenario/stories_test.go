package wsscenario

import (
	"flag"
	"maps"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestMain lets the stories wait beside each other: waiting is most of what they do. On a real cluster each has guests, and
// how many the nodes can bear is for go test's -parallel to say.
func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard()) // the simulators'
	if os.Getenv("OT_E2E") != "existing" {
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// story is told on a cluster that others may use at the same time.
type story func(*testing.T, *world)

// TestStories tells first the stories that get on with each other, then those that need the operators to themselves.
func TestStories(t *testing.T) {
	w := newWorld(t)
	t.Run("side by side", func(t *testing.T) {
		for name, tell := range anywhere() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tell(t, w)
			})
		}
		for name, tell := range simulated() {
			t.Run(name, func(t *testing.T) {
				if w.real {
					t.Skip("it tells a simulator what to do")
				}
				t.Parallel()
				tell(t, w)
			})
		}
	})
	for _, s := range []struct {
		name string
		tell story
	}{
		{"workspaces queue for a limit that is raised and lowered, and say their place", queue},
		{"a workspace that has failed frees its place, and is repaired without one", failedFrees},
		{"a limit that is no number leaves the last one", badPolicy},
		{"a workspace whose images queue says which, and where", imagesQueue},
		{"an operator that comes back makes the policy before what it isolates", policyFirst},
		{"an operator that is killed at any time goes on where it was", killed},
		{"a settled system writes nothing but the leader's Lease", settled},
	} {
		t.Run(s.name, func(t *testing.T) { s.tell(t, w) })
	}
}

// anywhere are the stories that a real cluster tells as well.
func anywhere() map[string]story {
	all := map[string]story{
		"two virtual machines and a container become Ready, and go without a trace": runsAndGoes,
		"a workspace without members is Ready, and one without replicas":            empty,
		"two workspaces of one template share the image that it makes":              templateShared,
		"an image that is lost meanwhile is synced again, and waited for":           imageLost,

		"entries are added, changed, renamed and removed":            entries,
		"another image makes the virtual machine anew":               anotherImage,
		"a name moves from a virtual machine to a container":         swapped,
		"what is changed or deleted of any child is put right":       drift,
		"isolate: false has no policy, and tells that":               notIsolated,
		"two workspaces in one namespace do not get into each other": sharedNamespace,
		"a workspace that another names is let in while it is there": friends,
		"a targetNamespace that is missing is waited for":            namespaceMissing,
		"a namespace of somebody else is left alone":                 namespaceTaken,
		"a namespace of somebody else does not go with a workspace":  namespaceTakenAndDeleted,
		"objects of somebody else with our names are left alone":     nameTaken,
		"objects of somebody else do not go with a workspace":        foreignGoesNot,

		"an image that cannot be pulled is told, and left":      failsAndRecovers(cannotBePulled, v1alpha1.WorkspaceImagePullFailed, "no-such-image"),
		"a crash loop is told, and left":                        failsAndRecovers(crashes, v1alpha1.WorkspaceCrashLooping),
		"a container that no node takes is told, and left":      failsAndRecovers(memory("8Ti"), v1alpha1.WorkspaceUnschedulable, "Insufficient memory"),
		"a quota that admits no pods is told, and left":         quotaRefuses(corev1.ResourcePods, `container "api-server"`),
		"a quota that admits no Deployment is told, and left":   quotaRefuses("count/deployments.apps"),
		"a quota that admits no Service is told, and left":      quotaRefuses(corev1.ResourceServices),
		"a virtual machine that fails is told with its cause":   machineFails,
		"the worst of the members is told first":                worstFirst,
		"the time that an image takes is not the workspace's":   imageTakesItsTime,
		"the policy goes after all that it isolates":            policyLast,
		"a Deployment that is held is named with its finalizer": blocked(blockedDeployment),
		"a VirtualMachine that is held is named, too":           blocked(blockedMachine),
		"what holds the namespace is named":                     blocked(blockedStranger),
		"a namespace that somebody deletes is made again":       namespaceByHand,
		"a workspace is deleted while its namespace goes":       deletedWhileNamespaceGoes,
		"a targetNamespace that somebody deletes is waited for": targetNamespaceGoes,
	}
	maps.Copy(all, deletions())
	return all
}

// simulated are the stories that need what only a simulator can be told to do.
func simulated() map[string]story {
	return map[string]story{
		"the example of the proposal becomes Ready as it stands there": example,
		"a guest that never runs: the time is over, and it goes on":    timesOut,
		"a guest that crashes later fails the workspace for a while":   guestCrashes,
		"networks of Multus are outside of the policy":                 secondaryNetworks,
	}
}
