package controller

import (
	"context"
	"encoding/json"

	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// repairOwner is the field owner of a list that was replaced, for a moment.
const repairOwner = FieldOwner + "-repair"

// reapply applies a child of ours by force, and sees to it that its lists are as they shall be. An apply takes no element of a
// list away that somebody else has added, such as a port of a Service, and is refused when the two do not go together. Then
// the list is replaced, what was replaced is made ours as if it had been applied, and the apply follows.
func (r *Workspaces) reapply(ctx context.Context, live client.Object, kind plan.Kind, want *unstructured.Unstructured, uid types.UID) (client.Object, error) {
	if err := r.takeOver(ctx, kind, want, uid); err != nil {
		return nil, err
	}
	applied, err := r.patch(ctx, kind, want, uid)
	refused := apierrors.IsInvalid(err)
	switch {
	case err == nil:
		live = applied
	case !refused:
		return nil, err
	}
	if uid == "" || live == nil {
		return applied, err
	}
	lists := desired.Lists(want, live, refused)
	if lists == nil {
		return applied, err
	}
	if err := r.replace(ctx, kind, want, uid, lists); err != nil {
		return nil, err
	}
	return r.patch(ctx, kind, want, uid)
}

// replace replaces lists of the very object, and gives them to the owner of what is applied: what another owner has is not
// taken away when it is left out one day.
func (r *Workspaces) replace(ctx context.Context, kind plan.Kind, want *unstructured.Unstructured, uid types.UID, lists map[string]any) error {
	lists["metadata"] = map[string]any{"uid": uid}
	raw, err := json.Marshal(lists)
	if err != nil {
		return wrap("encode the lists", err)
	}
	target := newOf(kind)
	target.SetNamespace(want.GetNamespace())
	target.SetName(want.GetName())
	if err := r.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(repairOwner)); err != nil {
		return wrap("replace the lists", err)
	}
	given, err := csaupgrade.UpgradeManagedFieldsPatch(target, sets.New(repairOwner), FieldOwner)
	if err != nil || given == nil {
		return wrap("read the owners of fields", err)
	}
	return wrap("take the lists over", r.client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, given)))
}

// takeOver makes the fields that a child was created with ours as if they had been applied: only then an apply that leaves one
// out takes it away. (To create is a third of the work of an apply for the API server, and most children are never changed.)
func (r *Workspaces) takeOver(ctx context.Context, kind plan.Kind, want *unstructured.Unstructured, uid types.UID) error {
	existing := newOf(kind)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(want), existing); err != nil {
		return wrap("read the owners of fields", err)
	}
	if existing.GetUID() != uid {
		return nil // the apply is refused
	}
	given, err := csaupgrade.UpgradeManagedFieldsPatch(existing, sets.New(FieldOwner), FieldOwner)
	if err != nil || given == nil {
		return wrap("read the owners of fields", err)
	}
	return wrap("take the fields over", r.client.Patch(ctx, existing, client.RawPatch(types.JSONPatchType, given)))
}
