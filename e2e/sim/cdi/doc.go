// Package cdi plays CDI v1.65 on a cluster that has its CustomResourceDefinitions but not CDI.
//
// A DataVolume with spec.storage (or spec.pvc) and a source of http, s3, registry or blank becomes
//
//	claim          of the DataVolume's name, controlled by it, Pending until the import is done
//	prime-UID      the populator's claim, UID being the claim's; controlled by the claim
//	importer-prime-UID  the pod, controlled by the prime claim; its kubelet is played, too, and obeys
//	               the restartPolicy that admission left in it
//	prime-UID-scratch   the scratch claim of a second pod, controlled by that pod
//
// The image is really downloaded, into a temporary folder, by the package importer. Phases, conditions, annotations
// and their order are those seen on the real CDI (testdata/good-import.golden is the transcript); all that depends
// on time is in Options. What is not played: uploads, VolumeImportSource objects, PersistentVolumes, storage profiles,
// WaitForFirstConsumer but for clones, CDI's events, and its webhooks but for one check (Options.Webhook).
//
// A DataVolume that has Succeeded is not done with: when its claim is deleted, the claim is made again and imported again,
// at once and by itself. The phase stays Succeeded until the new importer pod is there. A claim that is lost (phase Lost)
// after its import leaves the phase Succeeded, with Bound=False, ClaimLost. While a claim is being deleted, its DataVolume's
// status stays as it is. A DataVolume that is deleted takes its claim along by the garbage collector.
//
// Clones (source.snapshot, source.pvc) are played by the package clone; Behaviour.StopAt holds them in any of their phases.
//
// CDI keeps the state of an import in annotations of the claim and derives the DataVolume's status from them. So does
// this package: a play (play.go) changes annotations step by step, and status.go derives the status, a pure function.
package cdi
