package scenario

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestMain lets the stories wait beside each other: waiting is most of what they do.
func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard()) // the simulators'
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// story is told on a cluster that others may use at the same time.
type story func(*testing.T, *world)

// TestStories tells first the stories that get on with each other, under one policy, then those that set a policy of
// their own or that need the cluster to themselves.
func TestStories(t *testing.T) {
	w := newWorld(t)
	t.Run("side by side", func(t *testing.T) {
		w.policy(t, sharedPolicy(w))
		for name, tell := range map[string]story{
			"an image behind http with a checksum becomes a snapshot":            httpWithChecksum,
			"an image behind https is trusted by its certConfigMap":              httpsWithOwnAuthority,
			"an image in a bucket is fetched with the keys of its secret":        s3WithSecret,
			"an image in a container registry becomes a snapshot":                registryWithOwnAuthority,
			"a blank disk becomes a snapshot":                                    blankDisk,
			"an image that is not there fails after retryLimit retries":          notFound,
			"a connection that is cut is tried again, and fails in the end":      connectionCut,
			"a disk that is too small is final":                                  diskTooSmall,
			"a wrong checksum is final":                                          wrongChecksum,
			"an image that fails once is tried again and succeeds":               failsOnce,
			"a truncated file is imported, unless there is a checksum":           truncated,
			"a secret that is missing is named":                                  secretMissing,
			"a wrong key is an access that is denied":                            wrongKey,
			"a foreign DataVolume of that name is left alone":                    foreignDataVolume,
			"an image deleted during its sync can be created again at once":      deletedAndCreatedAgain,
			"a changed url ends the running sync and starts another one":         changedWhileSyncing,
			"a changed url revives a failed image":                               changedWhenFailed,
			"the annotation sync-requested-at revives a failed image":            requestedWhenFailed,
			"the annotation sync-requested-at makes a fresh copy of a good one":  requestedWhenSucceeded,
			"what is wrong with a spec is said by kubectl apply":                 invalidSpecs,
			"an image in use has a finalizer, and one that is released has none": finalizerFollowsTheReferences,
			"an image that is restored with the finalizer loses it":              restoredWithFinalizer,
			"an image that nobody uses is pruned when its time has come":         prunedWhenUnused,
			"an image in use is kept, and its last use moves the deadline":       keptWhileUsed,
			"a dry run says once what it would prune":                            dryRunTells,
			"the DataSync of the proposal succeeds as it stands there":           dataSyncExample,
			"a DataSync fails with one entry, recovers, and is synced afresh":    dataSyncFailsAndRecovers,
			"an entry that is taken off the list loses its image, when released": dataSyncEntryRemoved,
			"an entry whose image is somebody else's fails and touches nothing":  dataSyncForeignImage,
			"DataSyncs with the same names keep their images apart":              dataSyncsOfTheSameNames,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tell(t, w)
			})
		}
		for name, tell := range changesAndLosses() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tell(t, w)
			})
		}
	})
	for _, s := range []struct {
		name string
		tell story
	}{
		{"twelve images of two namespaces pass three slots in their order", limitAndOrder},
		{"the limit is raised and lowered while images are syncing", limitChanges},
		{"a changed url in the queue is what is downloaded", changedWhileQueued},
		{"a download that never begins is given up, and the next one gets the slot", stalled},
		{"a slot is free only when the DataVolume of a deleted image is gone", deletedWhileSyncing},
		{"a time to live in the policy is for all images but those that are pinned or controlled", expiryByPolicy},
		{"an expiry outlives the operator", expiryOutlivesTheOperator},
		{"the finalizer alone holds a deletion until the image is released", deletionIsHeld},
		{"a namespace that waits for an image in use keeps nobody from his turn", namespaceGoesWhileUsed},
		{"a claim that comes before the pruner's deletion wins", claimBeforePrune},
		{"a claim that comes after the pruner's deletion is refused", pruneBeforeClaim},
		{"what an entry of a DataSync leaves out comes from the policy, once", dataSyncDefaults},
		{"a source that is not allowed costs nothing, and is fetched when the policy admits it", sourceNotAllowed},
		{"a policy that is tightened stops who waits, and nobody who syncs", policyTightened},
		{"a bad policy is named, and the last good one stays", badPolicy},
		{"an operator that is killed has forgotten nothing when it is back", operatorKilled},
		{"an operator that is stopped hands over at once", operatorStopped},
		{"an update waits for its turn, and only the last one is downloaded", updateWaits},
		{"what was lost while the operator was away is noticed when it is back", lostUnnoticed},
		{"a volume that was deleted on purpose is not missed after a restart", volumeIsNotMissed},
		{"a foreign VolumeSnapshot in the place of a lost one is left alone", takenWhileAway},
		{"an operator that starts writes nothing where nothing is to be done", everyEnd},
		{"the metrics that are documented are there", metricsAreThere},
		{"a settled system writes nothing but the leader's Lease", settled},
	} {
		t.Run(s.name, func(t *testing.T) { s.tell(t, w) })
	}
}

// changesAndLosses are stories of an image's life after it has succeeded, side by side.
func changesAndLosses() map[string]story {
	return map[string]story{
		"an update takes the artifact's place when it is ready":           updated,
		"an update that fails leaves the artifact, and can be taken back": updateFails,
		"an update that has failed is tried again on request":             updateRequested,
		"two updates end with the second":                                 updatedTwice,
		"an update that is taken back costs nothing":                      updatedBack,
		"a lost snapshot is made again without a download":                snapshotDeleted,
		"a lost content is made again without a download":                 contentDeleted,
		"a lost volume is downloaded again, under another name":           volumeDeleted,
		"a lost claim is downloaded once, whatever CDI does":              claimDeleted,
		"a claim whose storage is gone is downloaded again":               claimLost,
		"volume and snapshot that are lost together are made again":       bothDeleted,
		"a snapshot lost during an update is not made again":              lostDuringUpdate,
		"a volume lost during an update is not downloaded again":          volumeLostDuringUpdate,
		"a snapshot lost after a failed update can be had back":           lostAfterFailedUpdate,
		"a volume that is lost twice is downloaded twice":                 lostTwice,
		"a lost snapshot that somebody holds is waited for":               heldSnapshot,
		"a snapshot that is lost again and again is made again each time": deletedAgainAndAgain,
		"a snapshot that is lost before it is ready is made again":        deletedAtOnce,
		"a volume that is not needed goes, and is not missed":             volumeGoes,
		"a lost snapshot without a volume costs a download":               snapshotLostWithoutVolume,
		"another volumePolicy costs no download":                          volumePolicyChanges,
		"an update without a volume leaves only its snapshot":             updatedWithoutVolume,
		"a foreign claim of that name is left alone":                      foreignClaim,
		"a foreign VolumeSnapshot of that name is left alone":             foreignSnapshot,
		"foreign objects with our labels are left alone":                  ourLabels,
		"an image created again has children of its own":                  recreated,
		"children that were left behind are nobody's":                     orphaned,
		"images of one name in two namespaces are two":                    namesakes,
	}
}
