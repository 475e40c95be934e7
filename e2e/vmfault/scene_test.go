package vmfault

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// farm is what the namespace of images is called after that of the virtual machines, where it is another one.
	farm = "-farm"
	// canary is a password that must be in Secrets only, and passwords the Secret that it is in.
	canary    = "c4nary-of-the-campaign"
	passwords = "passwords"
	image     = "golden"
)

// scene is where a story is told.
type scene struct {
	*lab.World
	// namespace of the virtual machines; images is that of the images.
	namespace, images string
	// since is the revision after which the story looks for what comes next.
	since int64
	// seen are UIDs that steps have noted for later ones.
	seen       map[string]string
	bystanders bool
}

// open makes the namespaces and the Secret with the password.
func (s *scene) open(ctx context.Context, story Story) error {
	s.images = s.namespace
	if err := s.Namespace(ctx, s.namespace); err != nil {
		return err
	}
	if story.Farm {
		s.images += farm
		if err := s.Namespace(ctx, s.images); err != nil {
			return err
		}
	}
	return s.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: passwords}, Data: map[string][]byte{"admin": []byte(canary)},
	})
}

// tell goes through the steps.
func (s *scene) tell(ctx context.Context, steps []Step) error {
	for i, step := range steps {
		if err := step.Do(ctx, s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, step.Name, err)
		}
	}
	return nil
}

// await an event in the story's namespaces.
func (s *scene) await(ctx context.Context, match func(history.Event) bool) error {
	e, err := s.Recorder.Wait(ctx, s.since, func(e history.Event) bool {
		return (e.Namespace == s.namespace || e.Namespace == s.images) && match(e)
	})
	if err == nil {
		s.since = e.Revision
	}
	return err
}

func (s *scene) machine(ctx context.Context, name string) (*otv1alpha1.VirtualMachine, error) {
	vm := &otv1alpha1.VirtualMachine{}
	return vm, s.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, vm)
}

func (s *scene) golden(ctx context.Context) (*otv1alpha1.VMDiskImage, error) {
	i := &otv1alpha1.VMDiskImage{}
	return i, s.Client.Get(ctx, client.ObjectKey{Namespace: s.images, Name: image}, i)
}

// placeBystanders puts objects beside a story's first virtual machine that look like its children, by name and by label, and
// are not: nobody owns them. Nothing may happen to them.
func (s *scene) placeBystanders(ctx context.Context, vm *otv1alpha1.VirtualMachine) error {
	if s.bystanders {
		return nil
	}
	s.bystanders = true
	meta := metav1.ObjectMeta{
		Namespace: vm.Namespace, Name: vm.Name + "-0badcafe",
		Labels:      map[string]string{otv1alpha1.LabelVirtualMachine: vm.Name, otv1alpha1.LabelVirtualMachineUID: string(vm.UID)},
		Annotations: map[string]string{invariant.AnnotationBystander: "true"},
	}
	volume := meta
	volume.Name += "-volume"
	storage := corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: meta},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: storage,
		}},
		&cdiv1.DataVolume{ObjectMeta: volume, Spec: cdiv1.DataVolumeSpec{
			Source: &cdiv1.DataVolumeSource{Blank: &cdiv1.DataVolumeBlankImage{}}, Storage: &cdiv1.StorageSpec{Resources: storage},
		}},
	} {
		if err := s.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// tellsNobody looks for the password in the events, which the history does not have.
func (s *scene) tellsNobody(ctx context.Context) error {
	list := &eventsv1.EventList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	raw, err := json.Marshal(list)
	if err == nil && strings.Contains(string(raw), canary) {
		return fmt.Errorf("I17 broken: an Event tells the password")
	}
	return err
}

// clear deletes the story's virtual machines and, as soon as nobody uses them, its images.
func (s *scene) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweep)
	defer cancel()
	for _, kind := range []client.Object{&otv1alpha1.VirtualMachine{}, &otv1alpha1.VMDiskImage{}} {
		for {
			err := s.Client.DeleteAllOf(ctx, kind, client.InNamespace(s.namespace))
			if err == nil && s.images != s.namespace {
				err = s.Client.DeleteAllOf(ctx, kind, client.InNamespace(s.images))
			}
			if err == nil {
				break
			}
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("nobody uses it, and yet: %w", err)
			case <-time.After(25 * time.Millisecond):
			}
		}
	}
	return nil
}
