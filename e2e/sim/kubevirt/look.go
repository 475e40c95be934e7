package kubevirt

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/kubevirt/objects"
)

// lookAt finds the DataVolume and the claim of a disk.
func (s *Simulator) lookAt(ctx context.Context, namespace string, disk *objects.Disk) error {
	key := client.ObjectKey{Namespace: namespace, Name: disk.Name}
	if disk.IsDataVolume {
		dv := &cdiv1.DataVolume{}
		err := s.reader().Get(ctx, key, dv)
		if err == nil {
			disk.DataVolume = dv
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if s.options.Instant != nil {
		return nil // a DataVolume that has Succeeded has its claim
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := s.reader().Get(ctx, key, claim)
	if err == nil {
		disk.Claim = claim
	}
	return client.IgnoreNotFound(err)
}

// missingNetwork is the first network of an instance whose NetworkAttachmentDefinition is not there.
func (s *Simulator) missingNetwork(ctx context.Context, vmi *virtv1.VirtualMachineInstance) (string, error) {
	for _, network := range vmi.Spec.Networks {
		if network.Multus == nil {
			continue
		}
		attachment := &unstructured.Unstructured{}
		attachment.SetAPIVersion("k8s.cni.cncf.io/v1")
		attachment.SetKind("NetworkAttachmentDefinition")
		namespace, name := objects.Attachment(vmi.Namespace, network.Multus.NetworkName)
		err := s.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, attachment)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return namespace + "/" + name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// missingSecret is the first Secret of an instance that is not there.
func (s *Simulator) missingSecret(ctx context.Context, vmi *virtv1.VirtualMachineInstance) (string, error) {
	for _, name := range objects.Secrets(&vmi.Spec) {
		err := s.live.Get(ctx, client.ObjectKey{Namespace: vmi.Namespace, Name: name}, &corev1.Secret{})
		if apierrors.IsNotFound(err) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}
