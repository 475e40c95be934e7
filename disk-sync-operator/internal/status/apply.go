package status

import (
	"encoding/json"
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	ac "github.com/pelotech/open-terrain/apis/ot/v1alpha1/applyconfiguration/ot/v1alpha1"
)

// Configuration is the server-side apply of a status: every field but references, which vm-operator owns. It is bound to
// the object that the status was made from: another write in between, or another object of that name, is a conflict.
// Status and its apply configuration have the same JSON, so that no field can be forgotten here.
func Configuration(image *v1alpha1.VMDiskImage, st v1alpha1.VMDiskImageStatus) (*ac.VMDiskImageApplyConfiguration, error) {
	st.References = nil
	raw, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	own := &ac.VMDiskImageStatusApplyConfiguration{}
	if err := json.Unmarshal(raw, own); err != nil {
		return nil, fmt.Errorf("decode the status: %w", err)
	}
	return ac.VMDiskImage(image.Name, image.Namespace).
		WithUID(image.UID).WithResourceVersion(image.ResourceVersion).WithStatus(own), nil
}
