package vmscenario

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
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
		{"a virtual machine that waits says what its image's place in the queue is", waitsInTheQueue},
		{"KubeVirt's API may be away for a while", virtAPIAway},
		{"a crowd that comes and goes costs the image few writes", crowd},
		{"an operator that is killed counts right when it is back", killed},
		{"a settled system writes nothing but the leaders' Leases", settled},
	} {
		t.Run(s.name, func(t *testing.T) { s.tell(t, w) })
	}
}

// anywhere are the stories that a real cluster tells as well.
func anywhere() map[string]story {
	return map[string]story{
		"a virtual machine runs, and is cleared away with all that it had":       runsAndGoes,
		"one that comes before its image waits for it":                           imageMissing,
		"a template makes the image, and two virtual machines share it":          templateMakesTheImage,
		"an image that differs from the template is used as it is":               imageMismatch,
		"an image of another namespace is used as long as that is granted":       grantAndRevocation,
		"an image that is lost and healed is cloned by those that waited":        imageLostAndHealed,
		"an image that failed fails the virtual machine, and both recover":       imageFailedAndRepaired,
		"a disk that is lost while the guest is stopped is cloned again":         diskLostWhileStopped,
		"a disk that is deleted while the guest runs is kept until it stops":     diskDeletedWhileRunning,
		"KubeVirt's machine is made again, and made right":                       machineRepaired,
		"a guest is stopped and started by its runStrategy":                      stoppedAndStarted,
		"ignoreOnDeploy makes all ready but does not start the guest":            ignoreOnDeploy,
		"what the guest is given changes with the users, without a restart":      usersChanged,
		"more memory asks for a restart and does not do it":                      memoryChanged,
		"a disk whose storage waits for the first consumer waits for the guest":  firstConsumer,
		"a quota that does not admit the disk is told, and left":                 diskQuota,
		"a quota that does not admit the guest is told, and left":                guestQuota,
		"a disk is never smaller than its image, and as large as asked for":      diskSizes,
		"a guest that no node takes fails, and runs once it is small enough":     unschedulable,
		"a Secret that was deleted is there again when it is needed":             secretDeleted,
		"a Secret of somebody else is left alone":                                secretOfSomebodyElse,
		"a password in a Secret is waited for, and stays out of everything else": passwordFromSecret,
		"a provisioningTimeout fails what waits, and it goes on when it can":     provisioningTimeout,
		"a foreign VirtualMachine of KubeVirt is left alone":                     foreignMachine,
		"a namespace goes with all that is in it":                                namespaceGoes,
		"a virtual machine that is made again has children of its own":           recreated,
		"what is wrong with a spec is said by kubectl apply":                     invalidSpecs,
	}
}

// simulated are the stories that need what only a simulator can be told to do.
func simulated() map[string]story {
	return map[string]story{
		"the example of the proposal becomes Ready as it stands there":      example,
		"a network that is missing is named, and the guest runs without us": networkMissing,
		"a crash loop fails the virtual machine, which recovers":            crashLoop,
		"states that change all the time do not show in the phase":          flapping,
		"a guest that never runs fails when its time is over":               neverRuns,
		"addresses are those that the guest agent reports":                  addresses,
	}
}
