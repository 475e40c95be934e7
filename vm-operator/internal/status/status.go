// Package status puts a decision into words: a pure function from the VirtualMachine and the plan's report to the whole status.
package status

import (
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of is the status that the report asks for. Transition times move only with a condition's status.
func Of(vm *v1alpha1.VirtualMachine, report plan.Report, now metav1.Time) v1alpha1.VirtualMachineStatus {
	if report.Silent {
		return *vm.Status.DeepCopy()
	}
	st := v1alpha1.VirtualMachineStatus{
		ObservedGeneration: vm.Generation,
		Message:            message(report),
		Image:              &report.ImageStatus,
		Disk:               report.DiskStatus,
		Users:              desired.Logins(vm),
		Interfaces:         report.Interfaces,
		Addresses:          addresses(report.Interfaces),
		PrintableStatus:    report.PrintableStatus,
		Deadline:           report.Deadline,
		TroubledSince:      report.TroubledSince,
	}
	st.Conditions = append(st.Conditions, vm.DeepCopy().Status.Conditions...)
	for _, c := range conditions(report) {
		c.ObservedGeneration, c.LastTransitionTime = vm.Generation, now
		meta.SetStatusCondition(&st.Conditions, c)
	}
	for _, gone := range absent(report) {
		meta.RemoveStatusCondition(&st.Conditions, gone)
	}
	st.Phase = v1alpha1.VirtualMachinePhaseOf(st.Conditions)
	return st
}

// message is for people: what is waited for, why it failed, or how the guest is.
func message(report plan.Report) string {
	switch {
	case report.Stalled != nil:
		return clip(report.Stalled.Message)
	case report.Ready && !report.Disk.Good:
		return clip(report.Machine.Message + ". " + report.Disk.Message)
	case report.Ready:
		return clip(report.Machine.Message)
	}
	return clip(report.Blocking.Message)
}

// addresses are those of all interfaces, in their order.
func addresses(interfaces []v1alpha1.VirtualMachineInterfaceStatus) string {
	var all []string
	for _, i := range interfaces {
		if i.IPAddress != "" {
			all = append(all, i.IPAddress)
		}
	}
	return strings.Join(all, ", ")
}

// maxMessage is less than what a condition's message may hold.
const maxMessage = 4096

func clip(message string) string { return clipTo(maxMessage, message) }

func clipTo(most int, message string) string {
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "")
}
