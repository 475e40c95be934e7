package fault

import (
	"context"
	"fmt"
	"testing"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sabotage has somebody do what the operator must not do, each in a story of its own, and demands that an oracle tells. Oracles
// that look only at the plan after are asked by Runner.Close.
func sabotage(t *testing.T, w *lab.World) {
	n := 0
	for name, test := range map[string]struct {
		do   func(context.Context, *lab.Scene, *lab.Life) error
		want string
	}{
		"it deletes a bystander":                     {do: deleteBystander, want: "I9 broken"},
		"it asks to delete whatever has a name":      {do: deleteByName, want: "I9 broken"},
		"it writes to an object of somebody's":       {do: writeForeign, want: "I9 broken"},
		"it deletes the snapshot of an image in use": {do: deleteUsed, want: "I6 broken"},
		"it ends otherwise":                          {do: endOtherwise, want: "I13 broken"},
		"it makes an object more":                    {do: makeMore, want: "were created"},
		"it writes when all is done":                 {do: writeLate, want: "I12 broken"},
		"it leaves an orphan":                        {do: leaveOrphan, want: "I8 broken"},
	} {
		t.Run(name, func(t *testing.T) {
			n++
			r := &lab.Runner{World: w, Story: lab.Lives()[0]}
			r.Story.Name = fmt.Sprintf("sabotage-%d", n)
			_, err := r.Run(t, lab.Plan{Story: r.Story.Name})
			require.NoError(t, err)
			r.Sabotage = test.do
			_, err = r.Run(t, lab.Plan{Story: r.Story.Name})
			if err == nil {
				err = r.Close(t)
			}
			require.Error(t, err)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func deleteBystander(ctx context.Context, s *lab.Scene, _ *lab.Life) error {
	return s.Client.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(s.Namespace), client.HasLabels{otv1alpha1.LabelImage})
}

// deleteByName goes through the operator's proxy, as one of its requests.
func deleteByName(ctx context.Context, s *lab.Scene, life *lab.Life) error {
	c, err := client.New(&rest.Config{Host: life.Proxy.URL()}, client.Options{Scheme: harness.NewScheme()})
	if err != nil {
		return err
	}
	err = c.Delete(ctx, &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "whatever"}})
	return client.IgnoreNotFound(err)
}

// writeForeign applies: of objects that nobody has applied, the API server does not note who wrote them.
func writeForeign(ctx context.Context, s *lab.Scene, _ *lab.Life) error {
	theirs := corev1ac.ConfigMap("theirs", s.Namespace).WithData(map[string]string{"key": "value"})
	return s.Client.Apply(ctx, theirs, client.FieldOwner("disk-sync-operator"))
}

func deleteUsed(ctx context.Context, s *lab.Scene, _ *lab.Life) error {
	if err := lab.Use("image", 1).Do(ctx, s); err != nil {
		return err
	}
	return lab.Lose("image", otv1alpha1.LostSnapshot).Do(ctx, s)
}

func endOtherwise(ctx context.Context, s *lab.Scene, _ *lab.Life) error {
	return lab.Change("image", func(i *otv1alpha1.VMDiskImage) { i.Finalizers = []string{"somebody/else"} }).Do(ctx, s)
}

func makeMore(ctx context.Context, s *lab.Scene, _ *lab.Life) error {
	dv := &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "more"}, Spec: cdiv1.DataVolumeSpec{
		Source: &cdiv1.DataVolumeSource{Blank: &cdiv1.DataVolumeBlankImage{}}, Storage: &cdiv1.StorageSpec{},
	}}
	if err := s.Client.Create(ctx, dv); err != nil {
		return err
	}
	return s.Client.Delete(ctx, dv)
}

// writeLate comes when the story has been judged.
func writeLate(ctx context.Context, s *lab.Scene, _ *lab.Life) error {
	s.Afterwards = func() error {
		return s.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "late"}})
	}
	return nil
}

func leaveOrphan(ctx context.Context, s *lab.Scene, _ *lab.Life) error {
	image, err := s.Image(ctx, "image")
	if err != nil {
		return err
	}
	s.Afterwards = func() error {
		if err := s.Client.Delete(ctx, image); err != nil {
			return err
		}
		return s.Client.Create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "orphan", Labels: map[string]string{otv1alpha1.LabelImage: string(image.UID)}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: image.Spec.DiskSize}},
			},
		})
	}
	return nil
}
