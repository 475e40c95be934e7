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
func Configuration(ws *v1alpha1.Workspace, st v1alpha1.WorkspaceStatus) (*ac.WorkspaceApplyConfiguration, error) {
	raw, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	own := &ac.WorkspaceStatusApplyConfiguration{}
	if err := json.Unmarshal(raw, own); err != nil {
		return nil, fmt.Errorf("decode the status: %w", err)
	}
	return ac.Workspace(ws.Name).WithUID(ws.UID).WithResourceVersion(ws.ResourceVersion).WithStatus(own), nil
}
