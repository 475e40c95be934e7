package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	ac "github.com/pelotech/open-terrain/apis/ot/v1alpha1/applyconfiguration/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/bare"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claim counts all machines that the image will get.
func (f *floor) claim(ctx context.Context, image *otv1alpha1.VMDiskImage) error {
	references := ac.References().WithCount(int32(f.share)).WithLastReferencedAt(metav1.Now())
	apply := ac.VMDiskImage(image.Name, image.Namespace).WithStatus(ac.VMDiskImageStatus().WithReferences(references))
	return f.client.Status().Apply(ctx, apply, client.FieldOwner(bare.Agent+"-references"), client.ForceOwnership)
}

func labels(vm *otv1alpha1.VirtualMachine) map[string]string {
	return map[string]string{
		"app.kubernetes.io/managed-by":    bare.Agent,
		otv1alpha1.LabelVirtualMachine:    vm.Name,
		otv1alpha1.LabelVirtualMachineUID: string(vm.UID),
	}
}

func owner(vm *otv1alpha1.VirtualMachine) *metav1.OwnerReference {
	return metav1.NewControllerRef(vm, otv1alpha1.SchemeGroupVersion.WithKind("VirtualMachine"))
}

func secret(vm *otv1alpha1.VirtualMachine) *corev1ac.SecretApplyConfiguration {
	o := owner(vm)
	return corev1ac.Secret(otv1alpha1.VirtualMachineChild(vm), vm.Namespace).
		WithLabels(labels(vm)).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion(o.APIVersion).WithKind(o.Kind).WithName(o.Name).WithUID(o.UID).
			WithController(true).WithBlockOwnerDeletion(true)).
		WithType(corev1.SecretTypeOpaque).
		WithData(map[string][]byte{"userdata": []byte(userData(vm)), "networkdata": []byte(networkData(vm))})
}

func userData(vm *otv1alpha1.VirtualMachine) string {
	text := &strings.Builder{}
	fmt.Fprintf(text, "#cloud-config\nhostname: %q\nssh_pwauth: true\nusers:\n", vm.Name)
	for _, user := range vm.Spec.Users {
		fmt.Fprintf(text, "  - name: %q\n    shell: \"/bin/bash\"\n    sudo: %q\n    lock_passwd: false\n    hashed_passwd: %q\n", user.Name, user.Sudo, user.HashedPasswd)
		for _, key := range user.SSHAuthorizedKeys {
			fmt.Fprintf(text, "    ssh_authorized_keys:\n      - %q\n", key)
		}
	}
	return text.String()
}

func networkData(vm *otv1alpha1.VirtualMachine) string {
	return fmt.Sprintf("version: 2\nethernets:\n  pod0:\n    match:\n      macaddress: %q\n    set-name: \"pod0\"\n"+
		"    dhcp4: true\n    dhcp4-overrides:\n      route-metric: 1000\n", mac(vm))
}

// mac follows from the UID.
func mac(vm *otv1alpha1.VirtualMachine) string {
	hex := strings.ReplaceAll(string(vm.UID), "-", "")
	return fmt.Sprintf("02:%s:%s:%s:%s:%s", hex[0:2], hex[2:4], hex[4:6], hex[6:8], hex[8:10])
}

func disk(vm *otv1alpha1.VirtualMachine, image *otv1alpha1.VMDiskImage) *cdiv1.DataVolume {
	return &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: otv1alpha1.VirtualMachineChild(vm), Namespace: vm.Namespace, Labels: labels(vm),
			OwnerReferences: []metav1.OwnerReference{*owner(vm)}, Finalizers: []string{otv1alpha1.FinalizerDisk},
			Annotations: map[string]string{
				"cdi.kubevirt.io/storage.deleteAfterCompletion": "false",
				otv1alpha1.AnnotationImageRevision:              image.Status.Artifact.Revision,
			},
		},
		Spec: cdiv1.DataVolumeSpec{
			Source:  &cdiv1.DataVolumeSource{Snapshot: &cdiv1.DataVolumeSourceSnapshot{Namespace: image.Namespace, Name: image.Status.Artifact.Snapshot}},
			Storage: &cdiv1.StorageSpec{},
		},
	}
}

// ready is the whole status of a machine that runs, in the operator's words.
func ready(j *job) (*ac.VirtualMachineApplyConfiguration, error) {
	vm, image, now := j.vm, j.image.image, metav1.Now()
	condition := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: vm.Generation, LastTransitionTime: now,
		}
	}
	stalled := condition(otv1alpha1.ConditionStalled, otv1alpha1.ReasonProgressing, "")
	stalled.Status = metav1.ConditionFalse
	st := otv1alpha1.VirtualMachineStatus{
		Phase: otv1alpha1.VirtualMachineReady, Message: "The guest runs", ObservedGeneration: vm.Generation, PrintableStatus: "Running",
		Image:      &otv1alpha1.VirtualMachineImageStatus{Namespace: image.Namespace, Name: image.Name, UID: image.UID, Phase: image.Status.Phase},
		Disk:       &otv1alpha1.VirtualMachineDiskStatus{DataVolume: otv1alpha1.VirtualMachineChild(vm), UID: j.disk, Size: image.Status.Artifact.RestoreSize, Revision: image.Status.Artifact.Revision},
		Interfaces: []otv1alpha1.VirtualMachineInterfaceStatus{{Network: "pod", MACAddress: mac(vm)}},
		Conditions: []metav1.Condition{
			condition(otv1alpha1.ConditionImageReady, string(otv1alpha1.ReasonImageReady), "The image can be cloned"),
			condition(otv1alpha1.ConditionDiskReady, string(otv1alpha1.ReasonDiskReady), "The disk is cloned"),
			condition(otv1alpha1.ConditionVirtualMachineReady, string(otv1alpha1.ReasonRunning), "The guest runs"),
			condition(otv1alpha1.ConditionReady, string(otv1alpha1.ReasonRunning), "The guest runs"),
			stalled,
		},
	}
	raw, err := json.Marshal(st)
	if err != nil {
		return nil, err
	}
	status := &ac.VirtualMachineStatusApplyConfiguration{}
	return ac.VirtualMachine(vm.Name, vm.Namespace).WithStatus(status), json.Unmarshal(raw, status)
}
