package desired

import (
	"encoding/json"
	"fmt"

	"github.com/pelotech/open-terrain/apis/drift"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Friends are other Workspaces by their names: those of network.allowFrom that exist.
type Friends map[string]*v1alpha1.Workspace

// Children are all of a workspace's children as they shall be, in the order in which they are made: the Namespace, if it is
// the workspace's own, the NetworkPolicies, the Services, the virtual machines, the Deployments.
//
// Each is sealed and complete: it can be applied (client.ApplyConfigurationFromUnstructured), and compared (Differences).
func Children(w *v1alpha1.Workspace, friends Friends, s Settings) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	if w.OwnsNamespace() {
		all = append(all, Namespace(w, s))
	}
	all = append(all, NetworkPolicies(w, friends, s)...)
	all = append(all, Services(w)...)
	all = append(all, VirtualMachines(w, s)...)
	return append(all, Deployments(w, s)...)
}

// sealed is what an apply configuration says, and nothing else, sealed.
func sealed(configuration any) *unstructured.Unstructured {
	raw, err := json.Marshal(configuration)
	if err != nil {
		panic(fmt.Errorf("write an apply configuration: %w", err)) // pointers to texts, numbers and quantities: cannot fail
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		panic(fmt.Errorf("read an apply configuration: %w", err))
	}
	return drift.Sealed(object)
}
