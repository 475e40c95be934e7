package snapshotter

import (
	"context"
	"errors"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const defaultClassAnnotation = "snapshot.storage.kubernetes.io/is-default-class"

// failure is an error that a VolumeSnapshot shows in its status and that is tried again.
type failure struct {
	message  string
	notReady bool // readyToUse becomes false; else it stays as it is
}

func (f failure) Error() string { return f.message }

func (s *Simulator) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request.Namespace == "" {
		return reconcile.Result{}, s.deleteOrphan(ctx, request.Name)
	}
	var snapshot snapshotv1.VolumeSnapshot
	if err := s.cached.Get(ctx, request.NamespacedName, &snapshot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	wait, err := s.step(ctx, snapshot.DeepCopy())
	if f, ok := errors.AsType[failure](err); ok {
		return reconcile.Result{}, errors.Join(err, s.showFailure(ctx, request.NamespacedName, f))
	}
	if apierrors.IsNotFound(err) { // the snapshot went in between
		return reconcile.Result{}, nil
	}
	if apierrors.IsConflict(err) { // or another one came after it, and what was made for it is nobody's
		return reconcile.Result{RequeueAfter: time.Millisecond}, s.deleteOrphan(ctx, contentName(snapshot.UID))
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// step brings a snapshot a step further; a duration says when the next one is due.
func (s *Simulator) step(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (time.Duration, error) {
	switch {
	case snapshot.DeletionTimestamp != nil:
		return s.release(ctx, snapshot)
	case snapshot.Spec.Source.PersistentVolumeClaimName == nil:
		return 0, nil
	case ready(snapshot):
		return 0, s.checkContent(ctx, snapshot)
	default:
		return s.take(ctx, snapshot)
	}
}

func ready(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status != nil && snapshot.Status.ReadyToUse != nil && *snapshot.Status.ReadyToUse
}

// take takes a snapshot, or goes on with it.
func (s *Simulator) take(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (time.Duration, error) {
	if err := s.protect(ctx, snapshot, asSource); err != nil {
		return 0, err
	}
	class, err := s.classOf(ctx, snapshot)
	if err != nil {
		return 0, err
	}
	claim, err := s.boundClaim(ctx, snapshot)
	if err != nil {
		return 0, err
	}
	content, err := s.makeContent(ctx, snapshot, class, claim)
	if err != nil {
		return 0, err
	}
	size := claim.Status.Capacity[corev1.ResourceStorage]
	status := &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &content.Name, RestoreSize: &size}
	if s.options.Instant {
		now, yes := metav1.Now(), true
		status.CreationTime, status.ReadyToUse = &now, &yes
		return 0, s.write(ctx, snapshot, status)
	}
	no := false
	if message := s.driverError(snapshot, class); message != "" {
		status.ReadyToUse, status.RestoreSize = &no, nil
		if err := s.write(ctx, snapshot, status); err != nil {
			return 0, err
		}
		return 0, failure{notReady: true, message: fmt.Sprintf("Failed to check and update snapshot content: failed to take snapshot of the volume %s: %q",
			*content.Spec.Source.VolumeHandle, "rpc error: code = Internal desc = "+message)}
	}
	return s.finish(ctx, snapshot, content, status, s.delay(class))
}

// finish shows the cut at once and readiness when the delay is over.
func (s *Simulator) finish(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent, status *snapshotv1.VolumeSnapshotStatus, delay time.Duration) (time.Duration, error) {
	cut := metav1.Now()
	if content.Status != nil && content.Status.CreationTime != nil {
		cut = metav1.NewTime(time.Unix(0, *content.Status.CreationTime))
	}
	left := delay - time.Since(cut.Time)
	isReady := left <= 0 && !s.options.Behaviour(snapshot.Namespace, snapshot.Name).NeverReady
	status.CreationTime, status.ReadyToUse = &cut, &isReady
	nanoseconds, handle, size := cut.UnixNano(), "snap-"+string(snapshot.UID), status.RestoreSize.Value()
	before := content.DeepCopy()
	content.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &handle, CreationTime: &nanoseconds, RestoreSize: &size, ReadyToUse: &isReady}
	if err := s.client.Status().Patch(ctx, content, client.MergeFrom(before)); err != nil {
		return 0, err
	}
	if err := s.write(ctx, snapshot, status); err != nil {
		return 0, err
	}
	if content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
		if err := s.protect(ctx, snapshot, whileBound); err != nil {
			return 0, err
		}
	}
	return max(0, left), nil
}

func (s *Simulator) delay(class *snapshotv1.VolumeSnapshotClass) time.Duration {
	if d, err := time.ParseDuration(class.Parameters[ParameterReadyAfter]); err == nil {
		return d
	}
	return s.options.ReadyAfter
}

func (s *Simulator) driverError(snapshot *snapshotv1.VolumeSnapshot, class *snapshotv1.VolumeSnapshotClass) string {
	if message := s.options.Behaviour(snapshot.Namespace, snapshot.Name).FailWith; message != "" {
		return message
	}
	return class.Parameters[ParameterFailWith]
}

// classOf is the class that the snapshot names, or the default one. The real controller asks for the claim first when
// it has to find a default, hence the error.
func (s *Simulator) classOf(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (*snapshotv1.VolumeSnapshotClass, error) {
	if name := snapshot.Spec.VolumeSnapshotClassName; name != nil {
		var class snapshotv1.VolumeSnapshotClass
		if err := s.cached.Get(ctx, types.NamespacedName{Name: *name}, &class); err != nil {
			return nil, failure{message: fmt.Sprintf("Failed to get snapshot class with error failed to retrieve snapshot class %s from the informer: %q", *name, err)}
		}
		return &class, nil
	}
	if _, err := s.claimOf(ctx, snapshot); err != nil {
		return nil, failure{message: "Failed to set default snapshot class with error " + err.Error()}
	}
	var all snapshotv1.VolumeSnapshotClassList
	if err := s.cached.List(ctx, &all); err != nil {
		return nil, err
	}
	var defaults []*snapshotv1.VolumeSnapshotClass
	for i := range all.Items {
		if all.Items[i].Annotations[defaultClassAnnotation] == "true" {
			defaults = append(defaults, &all.Items[i])
		}
	}
	switch len(defaults) {
	case 0:
		return nil, failure{message: "Failed to set default snapshot class with error cannot find default snapshot class"}
	case 1:
		return defaults[0], nil
	default:
		return nil, failure{message: fmt.Sprintf("Failed to set default snapshot class with error %d default snapshot classes were found", len(defaults))}
	}
}

func (s *Simulator) claimOf(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (*corev1.PersistentVolumeClaim, error) {
	name := *snapshot.Spec.Source.PersistentVolumeClaimName
	var claim corev1.PersistentVolumeClaim
	err := s.client.Get(ctx, types.NamespacedName{Namespace: snapshot.Namespace, Name: name}, &claim)
	if apierrors.IsNotFound(err) {
		// The real one reads from a lister, whose error names the kind in the singular.
		return nil, fmt.Errorf("failed to retrieve PVC %s from the lister: %q", name, fmt.Sprintf("persistentvolumeclaim %q not found", name))
	}
	return &claim, err
}

func (s *Simulator) boundClaim(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (*corev1.PersistentVolumeClaim, error) {
	claim, err := s.claimOf(ctx, snapshot)
	if err != nil {
		return nil, failure{notReady: true, message: fmt.Sprintf("Failed to create snapshot content with error %v", err)}
	}
	if claim.Status.Phase != corev1.ClaimBound {
		reason := fmt.Sprintf("the PVC %s is not yet bound to a PV, will not attempt to take a snapshot", claim.Name)
		return nil, failure{notReady: true, message: fmt.Sprintf("Failed to create snapshot content with error failed to get input parameters to create snapshot %s: %q", snapshot.Name, reason)}
	}
	return claim, nil
}
