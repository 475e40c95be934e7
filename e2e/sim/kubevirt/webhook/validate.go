package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	virtv1 "kubevirt.io/api/core/v1"
)

// causes are the items of a refusal.
type causes []metav1.StatusCause

func (c *causes) add(field, format string, arguments ...any) {
	*c = append(*c, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: fmt.Sprintf(format, arguments...)})
}

// Validate refuses what KubeVirt refuses, as far as the operators could write it.
func Validate(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	vm := &virtv1.VirtualMachine{}
	if err := json.Unmarshal(request.Object.Raw, vm); err != nil {
		return denied(err)
	}
	if vm.DeletionTimestamp != nil {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	found := Check(vm)
	if len(found) == 0 {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	var messages []string
	for _, cause := range found {
		messages = append(messages, cause.Message)
	}
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Message: strings.Join(messages, ", "), Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		Details: &metav1.StatusDetails{Causes: found},
	}}
}

const templateSpec = "spec.template.spec"

// Check lists what is wrong with a VirtualMachine.
func Check(vm *virtv1.VirtualMachine) []metav1.StatusCause {
	var c causes
	checkStrategy(&c, vm)
	if vm.Spec.Template == nil {
		return c
	}
	for label := range vm.Spec.Template.ObjectMeta.Labels {
		reserved := label == "kubevirt.io" || label == "kubevirt.io/created-by" || label == "vm.kubevirt.io/name"
		if reserved {
			c.add("spec.template.metadata.labels", "creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited")
			break
		}
	}
	spec := &vm.Spec.Template.Spec
	checkHostname(&c, spec)
	checkMachine(&c, spec)
	checkCPU(&c, spec)
	checkVolumes(&c, spec)
	checkDisks(&c, spec)
	checkNetworks(&c, spec)
	checkInterfaces(&c, spec)
	return c
}

func checkStrategy(c *causes, vm *virtv1.VirtualMachine) {
	switch {
	case vm.Spec.RunStrategy != nil && vm.Spec.Running != nil:
		c.add("spec.running", "Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead")
	case vm.Spec.RunStrategy == nil && vm.Spec.Running == nil:
		c.add("spec.running", "RunStrategy must be specified")
	case vm.Spec.RunStrategy != nil:
		switch *vm.Spec.RunStrategy {
		case virtv1.RunStrategyAlways, virtv1.RunStrategyHalted, virtv1.RunStrategyManual, virtv1.RunStrategyOnce, virtv1.RunStrategyRerunOnFailure:
		default:
			c.add("spec.runStrategy", "Invalid RunStrategy (%s)", *vm.Spec.RunStrategy)
		}
	}
}

func checkHostname(c *causes, spec *virtv1.VirtualMachineInstanceSpec) {
	if spec.Hostname == "" {
		return
	}
	if wrong := validation.IsDNS1123Label(spec.Hostname); len(wrong) > 0 {
		field := templateSpec + ".hostname"
		c.add(field, "%s does not conform to the kubernetes DNS_LABEL rules : %s", field, strings.Join(wrong, ", "))
	}
}

func checkMachine(c *causes, spec *virtv1.VirtualMachineInstanceSpec) {
	if machine := spec.Domain.Machine; machine != nil && !strings.HasPrefix(machine.Type, "q35") && !strings.HasPrefix(machine.Type, "pc-q35") {
		field := templateSpec + ".domain.machine.type"
		c.add(field, "%s is not supported: %s (allowed values: [q35* pc-q35*])", field, machine.Type)
	}
	firmware, features := spec.Domain.Firmware, spec.Domain.Features
	if firmware == nil || firmware.Bootloader == nil || firmware.Bootloader.EFI == nil {
		return
	}
	secure := ptr.Deref(firmware.Bootloader.EFI.SecureBoot, true)
	if smm := features != nil && features.SMM != nil && ptr.Deref(features.SMM.Enabled, true); secure && !smm {
		field := templateSpec + ".domain"
		c.add(field, "%s has EFI SecureBoot enabled. SecureBoot requires SMM, which is currently disabled.", field)
	}
}

func checkCPU(c *causes, spec *virtv1.VirtualMachineInstanceSpec) {
	field, limit := templateSpec+".domain.resources.requests.cpu", templateSpec+".domain.resources.limits.cpu"
	request, asked := spec.Domain.Resources.Requests[corev1.ResourceCPU]
	most, limited := spec.Domain.Resources.Limits[corev1.ResourceCPU]
	if asked && request.Sign() < 0 {
		c.add(field, "%s '%s': must be greater than or equal to 0.", field, request.String())
	}
	if asked && limited && request.Cmp(most) > 0 {
		c.add(field, "%s '%s' is greater than %s '%s'", field, request.String(), limit, most.String())
	}
}
