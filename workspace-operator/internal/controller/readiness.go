package controller

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// needs are the kinds that the operator cannot work without, and who brings them.
var needs = []struct {
	kind  schema.GroupKind
	scope meta.RESTScope
	from  string
}{
	{schema.GroupKind{Group: "pelotech.ot", Kind: "Workspace"}, meta.RESTScopeRoot, "this operator's chart"},
	{schema.GroupKind{Group: "pelotech.ot", Kind: "VirtualMachine"}, meta.RESTScopeNamespace, "the chart of the vm-operator"},
}

// Ready is a readiness check: not ready, with a message that names what to install, until every kind that is needed is
// served. Once it has been, it is not asked again.
func Ready(mapper meta.RESTMapper) func(*http.Request) error {
	var seen atomic.Bool
	return func(*http.Request) error {
		if seen.Load() {
			return nil
		}
		for _, need := range needs {
			if _, err := mapper.RESTMapping(need.kind); err != nil {
				return fmt.Errorf("the API server does not serve %s: install %s (%w)", need.kind, need.from, err)
			}
		}
		seen.Store(true)
		return nil
	}
}
