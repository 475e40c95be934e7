package webhook

import (
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	virtv1 "kubevirt.io/api/core/v1"

	"github.com/pelotech/open-terrain/e2e/sim/kubevirt/objects"
)

// Mutate fills in what KubeVirt fills in. The spec is written anew from the decoded object, as there: quantities become
// canonical, and what is nothing is dropped.
func Mutate(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	vm := &virtv1.VirtualMachine{}
	if err := json.Unmarshal(request.Object.Raw, vm); err != nil {
		return denied(err)
	}
	if vm.DeletionTimestamp != nil || vm.Spec.Template == nil {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	fillIn(vm)
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": vm.Spec}})
	if err != nil {
		return denied(err)
	}
	kind := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: patch, PatchType: &kind}
}

func fillIn(vm *virtv1.VirtualMachine) {
	template := vm.Spec.Template
	if template.ObjectMeta.Annotations[objects.AnnTopology] == "" {
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, objects.AnnTopology, "v3")
	}
	if template.Spec.Architecture == "" {
		template.Spec.Architecture = "amd64"
	}
	domain := &template.Spec.Domain
	if domain.Machine == nil {
		domain.Machine = &virtv1.Machine{}
	}
	if domain.Machine.Type == "" {
		domain.Machine.Type = "q35"
	}
	if domain.Firmware == nil {
		domain.Firmware = &virtv1.Firmware{}
	}
	if domain.Firmware.UUID == "" {
		domain.Firmware.UUID = uuid.NewUUID()
	}
	if domain.Firmware.Serial == "" {
		domain.Firmware.Serial = string(uuid.NewUUID())
	}
}
