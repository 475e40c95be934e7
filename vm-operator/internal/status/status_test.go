package status_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/pelotech/open-terrain/vm-operator/internal/status"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	now   = metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))
	later = metav1.NewTime(now.Add(time.Hour))
)

func vm() *v1alpha1.VirtualMachine {
	return &v1alpha1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "lab", UID: "uid-web", ResourceVersion: "7", Generation: 3},
		Spec: v1alpha1.VirtualMachineSpec{
			VMDiskImageRef: v1alpha1.VMDiskImageReference{Name: "ubuntu"},
			MachineSpec: v1alpha1.MachineSpec{
				Users: []v1alpha1.VirtualMachineUser{{Name: "demo user", PlainTextPasswd: "canary"}, {Name: "ci"}},
			},
		},
	}
}

func yes(reason v1alpha1.VirtualMachineReason, message string) plan.Verdict {
	return plan.Verdict{Good: true, Reason: reason, Message: message}
}

func no(reason v1alpha1.VirtualMachineReason, message string) plan.Verdict {
	return plan.Verdict{Reason: reason, Message: message}
}

// waiting is a report of a VM whose disk is being cloned; ready one of a guest that runs.
func waiting(mods ...func(*plan.Report)) plan.Report {
	return made(plan.Report{
		Image: yes(v1alpha1.ReasonImageReady, "i"), Disk: no(v1alpha1.ReasonDiskCloning, "The disk is being cloned"), Machine: no(v1alpha1.ReasonWaiting, "m"),
		Blocking: no(v1alpha1.ReasonDiskCloning, "The disk is being cloned"), Deadline: &later,
	}, mods)
}

func ready(mods ...func(*plan.Report)) plan.Report {
	return made(plan.Report{
		Image: yes(v1alpha1.ReasonImageReady, "i"), Disk: yes(v1alpha1.ReasonDiskReady, "d"), Machine: yes(v1alpha1.ReasonRunning, "The guest is running"), Ready: true,
		Interfaces: []v1alpha1.VirtualMachineInterfaceStatus{{Network: "pod", IPAddress: "10.0.0.1"}, {Network: "dark"}, {Network: "lan", IPAddress: "fd00::5"}},
	}, mods)
}

func made(r plan.Report, mods []func(*plan.Report)) plan.Report {
	r.ImageStatus = v1alpha1.VirtualMachineImageStatus{Namespace: "lab", Name: "ubuntu"}
	for _, mod := range mods {
		mod(&r)
	}
	return r
}

func failed(r *plan.Report) {
	late := no(v1alpha1.ReasonProvisioningTimeout, "Not ready in time")
	r.Stalled = &late
}

func lost(r *plan.Report) {
	r.Disk, r.DiskStatus = no(v1alpha1.ReasonDiskLost, "lost"), &v1alpha1.VirtualMachineDiskStatus{DataVolume: "d", LostAt: &now}
}
func deletedDisk(r *plan.Report) { r.Disk = no(v1alpha1.ReasonDiskDeleted, "It is kept") }
func notAllowed(r *plan.Report)  { r.Image = no(v1alpha1.ReasonImageNotAllowed, "no grant") }
func differs(r *plan.Report)     { r.Mismatch = []string{"url", "checksum"} }
func restart(r *plan.Report)     { r.RestartRequired = "memory" }

func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		report  plan.Report
		phase   v1alpha1.VirtualMachinePhase
		ready   string
		stalled string
		message string
	}{
		"waiting":              {waiting(), v1alpha1.VirtualMachineProvisioning, "False DiskCloning", "False Progressing", "The disk is being cloned"},
		"failed":               {waiting(failed), v1alpha1.VirtualMachineFailed, "False DiskCloning", "True ProvisioningTimeout", "Not ready in time"},
		"ready":                {ready(), v1alpha1.VirtualMachineReady, "True Running", "False Progressing", "The guest is running"},
		"ready without grant":  {ready(notAllowed), v1alpha1.VirtualMachineReady, "True Running", "False Progressing", "The guest is running"},
		"ready, disk deleted":  {ready(deletedDisk), v1alpha1.VirtualMachineReady, "True Running", "False Progressing", "The guest is running. It is kept"},
		"ready, to be started": {ready(restart, differs), v1alpha1.VirtualMachineReady, "True Running", "False Progressing", "The guest is running"},
	} {
		t.Run(name, func(t *testing.T) {
			st := status.Of(vm(), c.report, now)
			assert.Equal(t, c.phase, st.Phase)
			assert.Equal(t, c.ready, apitest.ConditionOf(st.Conditions, v1alpha1.ConditionReady))
			assert.Equal(t, c.stalled, apitest.ConditionOf(st.Conditions, v1alpha1.ConditionStalled))
			assert.Equal(t, c.message, st.Message)
			assert.Empty(t, apitest.Wrong(st.Conditions, 3))
			assert.EqualValues(t, 3, st.ObservedGeneration)
			assert.Equal(t, []v1alpha1.VirtualMachineUserStatus{{Name: "demo user", Login: "demo-user"}}, st.Users)

			again := vm()
			again.Status = st
			assert.Equal(t, st, status.Of(again, c.report, later), "the same report changes nothing, and no time")
		})
	}
}

func TestConditionsThatAreThereWhileTheyAreTrue(t *testing.T) {
	v := vm()
	v.Status = status.Of(v, ready(restart, differs), now)
	assert.Equal(t, "True SpecChanged", apitest.ConditionOf(v.Status.Conditions, v1alpha1.ConditionRestartRequired))
	assert.Equal(t, "The image is used as it is; it differs from vmDiskImageTemplate in url, checksum",
		meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionImageMismatch).Message)
	assert.Len(t, v.Status.Conditions, 7)
	assert.Len(t, status.Of(v, ready(), now).Conditions, 5)
}

func TestAddressesInOneLine(t *testing.T) {
	assert.Equal(t, "10.0.0.1, fd00::5", status.Of(vm(), ready(), now).Addresses)
}

func TestASilentReportLeavesStatusAsItIs(t *testing.T) {
	v := vm()
	v.Status = status.Of(v, ready(), now)
	assert.Equal(t, v.Status, status.Of(v, plan.Report{Silent: true}, later))
}

func TestLongMessagesAreCut(t *testing.T) {
	report := waiting(func(r *plan.Report) { r.Blocking.Message = strings.Repeat("ä", 40000); r.Disk = r.Blocking })
	for _, c := range status.Of(vm(), report, now).Conditions {
		assert.LessOrEqual(t, len(c.Message), 32768, c.Type)
	}
}

func TestConfiguration(t *testing.T) {
	v := vm()
	size := resource.MustParse("18Gi")
	st := status.Of(v, ready(func(r *plan.Report) {
		r.DiskStatus = &v1alpha1.VirtualMachineDiskStatus{DataVolume: "d", UID: "u", Size: &size, LostAt: &now}
	}), now)
	apply, err := status.Configuration(v, st)
	require.NoError(t, err)
	assert.Equal(t, "7", *apply.ResourceVersion, "bound to the version that was looked at")
	assert.EqualValues(t, "uid-web", *apply.UID)
	assert.Equal(t, "u", string(*apply.Status.Disk.UID))
	assert.Nil(t, apply.Spec, "the spec is its author's")

	image := apitest.Image("ubuntu")
	references, err := status.References(image, v1alpha1.References{Count: 0, LastReferencedAt: &now})
	require.NoError(t, err)
	assert.EqualValues(t, 0, *references.Status.References.Count, "a count of 0 is written, too")
	assert.Nil(t, references.Status.Phase, "nothing but the references is ours")
	assert.Equal(t, image.ResourceVersion, *references.ResourceVersion)
}

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		before, after plan.Report
		want          []string // a ! is a warning
	}{
		"it waits":               {plan.Report{Silent: true}, waiting(), nil},
		"it is ready":            {waiting(), ready(), []string{"Ready"}},
		"it is ready no more":    {ready(), waiting(), []string{"NotReady"}},
		"it failed":              {waiting(), waiting(failed), []string{"!ProvisioningTimeout"}},
		"it fails on":            {waiting(failed), waiting(failed, notAllowed), []string{"!ImageNotAllowed"}},
		"it recovers":            {waiting(failed), waiting(), []string{"Recovering"}},
		"the disk is lost":       {ready(), waiting(lost), []string{"!DiskLost", "NotReady"}},
		"it was lost before":     {waiting(lost), waiting(lost), nil},
		"the disk was deleted":   {ready(), ready(deletedDisk), []string{"!DiskDeleted"}},
		"the grant is gone":      {ready(), ready(notAllowed), []string{"!ImageNotAllowed"}},
		"the image is another":   {waiting(), waiting(differs), []string{"!ImageMismatch"}},
		"it has to be restarted": {ready(), ready(restart), []string{"RestartRequired"}},
		"all stays":              {ready(restart, differs, notAllowed), ready(restart, differs, notAllowed), nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := vm()
			before := status.Of(v, c.before, now)
			v.Status = before
			after := status.Of(v, c.after, later)
			var got []string
			for _, event := range status.EventsOf(&before, &after) {
				assert.NotEmpty(t, event.Note)
				if event.Warning {
					event.Reason = "!" + event.Reason
				}
				got = append(got, event.Reason)
			}
			assert.Equal(t, c.want, got)
		})
	}
}
