package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientevents "k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// stage is a reconciler on a client that keeps objects in memory. What the API server makes of an apply is shown by the stories
// in e2e; here it is what is written, in which order, and what happens when it fails.
type stage struct {
	*Workspaces
	t      *testing.T
	mu     sync.Mutex
	writes []string
	// fails gives the error of a write, if it is to fail.
	fails func(write string) error
}

func newStage(t *testing.T, objects ...client.Object) *stage {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	s := &stage{t: t, fails: func(string) error { return nil }}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Workspace{}).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				return s.write("create", obj, func() error { return c.Create(ctx, obj, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				return s.write("patch", obj, func() error {
					if patch.Type() == types.ApplyPatchType {
						return applied(ctx, c, obj, patch)
					}
					return c.Patch(ctx, obj, patch, opts...)
				})
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				return s.write("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
			},
			SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
				return s.write("status of", &v1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "lab"}}, func() error {
					return c.SubResource(sub).Apply(ctx, obj, opts...)
				})
			},
		})
	for _, i := range newIndexes(nil).list {
		builder = builder.WithIndex(i.kind, i.field, i.value)
	}
	c := builder.Build()
	admission := hall(t)
	admission.learn(slotLease(0, "/lab/u-lab", 1))
	s.Workspaces = &Workspaces{
		client: c, cache: c, live: c, admission: admission, now: time.Now, metrics: admission.metrics,
		events:   &events{recorder: clientevents.NewFakeRecorder(1000)},
		settings: plan.Settings{TroubleDebounce: time.Minute, Desired: desired.DefaultSettings()},
	}
	return s
}

// applied is what a server-side apply comes to: the client in memory has no schemas to do it by. Without a UID it meets what is
// there as a stranger.
func applied(ctx context.Context, c client.Client, obj client.Object, patch client.Patch) error {
	raw, err := patch.Data(obj)
	if err != nil {
		return err
	}
	existing := obj.DeepCopyObject().(client.Object)
	err = c.Get(ctx, client.ObjectKeyFromObject(obj), existing)
	if err := json.Unmarshal(raw, obj); err != nil {
		return err
	}
	switch {
	case apierrors.IsNotFound(err):
		obj.SetUID(types.UID("u-" + obj.GetName()))
		return c.Create(ctx, obj)
	case err != nil:
		return err
	case obj.GetUID() != existing.GetUID():
		return apierrors.NewConflict(schema.GroupResource{}, obj.GetName(), errors.New("fields of somebody else"))
	}
	return c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, raw))
}

// write notes a write by kind and name.
func (s *stage) write(verb string, obj client.Object, do func() error) error {
	name := fmt.Sprintf("%s %T %s", verb, obj, obj.GetName())
	s.mu.Lock()
	err := s.fails(name)
	s.mu.Unlock()
	if err == nil {
		err = do()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.writes = append(s.writes, name)
	}
	return err
}

// settle reconciles until nothing is written, and tells what was.
func (s *stage) settle() []string {
	s.t.Helper()
	var all []string
	for range 20 {
		s.writes = nil
		_, err := s.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "lab"}})
		require.NoError(s.t, err)
		if len(s.writes) == 0 {
			return all
		}
		all = append(all, s.writes...)
	}
	s.t.Fatal("it does not come to rest", all)
	return nil
}

func (s *stage) workspace() *v1alpha1.Workspace {
	ws := &v1alpha1.Workspace{}
	require.NoError(s.t, s.client.Get(s.t.Context(), types.NamespacedName{Name: "lab"}, ws))
	return ws
}

func lab(mods ...apitest.WorkspaceMod) *v1alpha1.Workspace {
	ws := apitest.Workspace("lab", mods...)
	ws.UID, ws.Generation = "u-lab", 1
	return ws
}

func TestAWorkspaceIsMadeInOrder(t *testing.T) {
	s := newStage(t, lab(apitest.Runs("api", "registry.test/api:1", apitest.Listens(8080))))
	writes := s.settle()
	order := []string{
		"patch *v1alpha1.Workspace lab", // the finalizer
		"status of *v1alpha1.Workspace lab",
		"create *v1.Namespace ws-lab",
		"create *v1.NetworkPolicy workspace",
	}
	require.GreaterOrEqual(t, len(writes), len(order))
	assert.Equal(t, order, writes[:len(order)])
	assert.ElementsMatch(t, []string{"create *v1.Service api", "create *v1.Deployment api"}, writes[len(order):len(order)+2])
	assert.NotNil(t, s.workspace().Status.AdmittedAt)
}

func TestNothingIsMadeBehindPoliciesThatFail(t *testing.T) {
	s := newStage(t, lab(apitest.Runs("api", "registry.test/api:1", apitest.Listens(8080))))
	s.fails = func(write string) error {
		if write == "create *v1.NetworkPolicy workspace" {
			return apierrors.NewInternalError(errors.New("a webhook is away"))
		}
		return nil
	}
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "lab"}}
	_, err := s.Reconcile(t.Context(), request)
	require.NoError(t, err)
	_, err = s.Reconcile(t.Context(), request)
	require.ErrorContains(t, err, "a webhook is away")
	s.fails = func(write string) error {
		if write == "create *v1.NetworkPolicy workspace" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "networkpolicies"}, "workspace", errors.New("a policy is against it"))
		}
		return nil
	}
	s.settle()
	assert.ErrorContains(t, s.client.Get(t.Context(), types.NamespacedName{Namespace: "ws-lab", Name: "api"}, &appsv1.Deployment{}), "not found")
	ready := meta.FindStatusCondition(s.workspace().Status.Conditions, v1alpha1.ConditionReady)
	require.NotNil(t, ready)
	assert.Equal(t, metav1.ConditionFalse, ready.Status)
	assert.Contains(t, ready.Message, "a policy is against it")
}

func TestANamespaceOfSomebodyElseIsNotTakenOver(t *testing.T) {
	s := newStage(t, lab(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ws-lab"}})
	assert.NotContains(t, s.settle(), "patch *v1.Namespace ws-lab")
	namespace := &corev1.Namespace{}
	require.NoError(t, s.client.Get(t.Context(), types.NamespacedName{Name: "ws-lab"}, namespace))
	assert.Empty(t, namespace.OwnerReferences)
	assert.Empty(t, namespace.Labels)
}

// The cache knows objects by our label only: somebody else's of that name comes as a surprise.
func TestWhatTheCacheDoesNotShowIsAskedForBeforeItIsTaken(t *testing.T) {
	ws := lab(apitest.Targets("shared"), apitest.Runs("api", "registry.test/api:1", apitest.Listens(8080)))
	name := v1alpha1.WorkspaceChild(ws, "api")
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shared", Name: name, UID: "foreign"}}
	s := newStage(t, ws, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}, foreign)
	s.client = blind{s.client}
	writes := s.settle()
	assert.NotContains(t, writes, "create *v1.Deployment "+name)
	assert.Contains(t, writes, "create *v1.Service "+name, "the others are made")
	ready := meta.FindStatusCondition(s.workspace().Status.Conditions, v1alpha1.ConditionReady)
	assert.Equal(t, string(v1alpha1.WorkspaceNameTaken), ready.Reason)
}

// blind is a client whose cache shows no Deployment without our label.
type blind struct{ client.Client }

func (b blind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := b.Client.Get(ctx, key, obj, opts...)
	if _, is := obj.(*appsv1.Deployment); is && err == nil && obj.GetLabels()[v1alpha1.LabelWorkspaceUID] == "" {
		return apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, key.Name)
	}
	return err
}

func TestAWorkspaceIsTakenAwayInOrder(t *testing.T) {
	s := newStage(t, lab(apitest.Runs("api", "registry.test/api:1", apitest.Listens(8080))))
	s.settle()
	ws := s.workspace()
	require.NoError(t, s.client.Delete(t.Context(), ws))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ws-lab", Name: "api-1", Labels: map[string]string{v1alpha1.LabelWorkspaceUID: "u-lab"}}}
	require.NoError(t, s.client.Create(t.Context(), pod))

	first := s.settle()
	assert.Contains(t, first, "delete *v1.Deployment api")
	assert.NotContains(t, first, "delete *v1.Service api", "a pod runs")
	require.NoError(t, s.client.Delete(t.Context(), pod))
	var deletions []string
	for _, write := range s.settle() {
		if !slices.Contains([]string{"status of *v1alpha1.Workspace lab"}, write) {
			deletions = append(deletions, write)
		}
	}
	assert.Equal(t, []string{
		"delete *v1.Service api", "delete *v1.NetworkPolicy workspace", "delete *v1.Namespace ws-lab", "patch *v1alpha1.Workspace lab",
	}, deletions)
	assert.True(t, apierrors.IsNotFound(s.client.Get(t.Context(), types.NamespacedName{Name: "lab"}, &v1alpha1.Workspace{})))
	var policies networkingv1.NetworkPolicyList
	require.NoError(t, s.client.List(t.Context(), &policies))
	assert.Empty(t, policies.Items)
}

func TestAWorkspaceWithoutASlotIsLeftAlone(t *testing.T) {
	s := newStage(t, lab(apitest.Runs("api", "registry.test/api:1", apitest.Listens(8080))))
	s.admission.leaseGone(slotLease(0, "/lab/u-lab", 2))
	assert.Empty(t, s.settle(), "the queue has not looked at it")
	s.admission.workspaceSeen(s.workspace())
	s.admission.learn(slotLease(0, "/other/u", 3))
	_, more := s.admission.next(1)
	require.False(t, more)
	s.admission.tell()
	assert.Equal(t, []string{"status of *v1alpha1.Workspace lab"}, s.settle())
	st := s.workspace().Status
	require.NotNil(t, st.Queue)
	assert.Equal(t, int32(1), st.Queue.Position)
	assert.NotZero(t, st.Queue.Ticket)
	assert.Nil(t, st.AdmittedAt)
}
