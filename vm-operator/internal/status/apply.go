package status

import (
	"encoding/json"
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	ac "github.com/pelotech/open-terrain/apis/ot/v1alpha1/applyconfiguration/ot/v1alpha1"
)

// Configuration is the server-side apply of a status. It is bound to the object that the status was made from: another write in
// between, or another object of that name, is a conflict. Status and its apply configuration have the same JSON, so that no
// field can be forgotten here.
func Configuration(vm *v1alpha1.VirtualMachine, st v1alpha1.VirtualMachineStatus) (*ac.VirtualMachineApplyConfiguration, error) {
	own := &ac.VirtualMachineStatusApplyConfiguration{}
	if err := convert(st, own); err != nil {
		return nil, err
	}
	return ac.VirtualMachine(vm.Name, vm.Namespace).
		WithUID(vm.UID).WithResourceVersion(vm.ResourceVersion).WithStatus(own), nil
}

// References is the server-side apply of an image's references, bound to the image that they were counted for.
func References(image *v1alpha1.VMDiskImage, references v1alpha1.References) (*ac.VMDiskImageApplyConfiguration, error) {
	own := &ac.ReferencesApplyConfiguration{}
	if err := convert(references, own); err != nil {
		return nil, err
	}
	return ac.VMDiskImage(image.Name, image.Namespace).
		WithUID(image.UID).WithResourceVersion(image.ResourceVersion).
		WithStatus(ac.VMDiskImageStatus().WithReferences(own)), nil
}

func convert(from, to any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encode %T: %w", from, err)
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("decode %T: %w", to, err)
	}
	return nil
}
