package desired_test

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds make an empty object of the type that the operator's cache holds.
var kinds = map[string]func() runtime.Object{
	"Namespace":      func() runtime.Object { return &corev1.Namespace{} },
	"NetworkPolicy":  func() runtime.Object { return &networkingv1.NetworkPolicy{} },
	"Service":        func() runtime.Object { return &corev1.Service{} },
	"VirtualMachine": func() runtime.Object { return &v1alpha1.VirtualMachine{} },
	"Deployment":     func() runtime.Object { return &appsv1.Deployment{} },
}

// typed is a child as a cache holds it: of its type, without the names of it.
func typed(t *testing.T, child *unstructured.Unstructured) runtime.Object {
	t.Helper()
	live := kinds[child.GetKind()]()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(child.Object, live, true),
		"every field is one that the API has")
	live.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return live
}

func TestNothingDiffersFromWhatWasApplied(t *testing.T) {
	for _, name := range []string{"proposal", "full", "foreign", "dual-stack"} {
		for _, child := range desired.Children(read(t, name), friends, dual()) {
			live := typed(t, child)
			assert.Empty(t, desired.Differences(child, live), "%s %s", child.GetKind(), child.GetName())
			assert.Empty(t, desired.Differences(child, child), "%s %s", child.GetKind(), child.GetName())
			assert.Empty(t, desired.Fixed(child, live))
		}
	}
}

// lab has one of each.
func lab() *v1alpha1.Workspace {
	return apitest.Workspace("lab", apitest.Member("db", "postgres"), apitest.Runs("api", "api:1", apitest.Listens(80)))
}

// damage changes what there is of one child.
func damage[T runtime.Object](change func(T)) func(runtime.Object) {
	return func(live runtime.Object) { change(live.(T)) }
}

func TestDifferences(t *testing.T) {
	cases := map[string]struct {
		kind, name string
		change     func(runtime.Object)
		want       []string
	}{
		"a level of security": {"Namespace", "ws-lab", damage(func(n *corev1.Namespace) {
			n.Labels["pod-security.kubernetes.io/enforce"] = "privileged"
		}), []string{"metadata.labels.pod-security.kubernetes.io/enforce"}},
		"a label of others": {"Namespace", "ws-lab", damage(func(n *corev1.Namespace) { n.Labels["team"] = "a" }), nil},
		"no owner":          {"Service", "api", damage(func(s *corev1.Service) { s.OwnerReferences = nil }), []string{"metadata.ownerReferences"}},
		"a namespaceSelector beside the peers'": {"NetworkPolicy", "workspace", damage(func(p *networkingv1.NetworkPolicy) {
			p.Spec.Ingress[0].From[0].NamespaceSelector = &metav1.LabelSelector{}
		}), []string{"spec.ingress[0].from[0].namespaceSelector"}},
		"a rule for everybody": {"NetworkPolicy", "workspace", damage(func(p *networkingv1.NetworkPolicy) {
			p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{})
		}), []string{"spec.egress"}},
		"a selector that leaves out": {"NetworkPolicy", "workspace", damage(func(p *networkingv1.NetworkPolicy) {
			p.Spec.PodSelector.MatchLabels = map[string]string{"a": "b"}
		}), []string{"spec.podSelector.matchLabels"}},
		"one direction": {"NetworkPolicy", "workspace", damage(func(p *networkingv1.NetworkPolicy) {
			p.Spec.PolicyTypes = p.Spec.PolicyTypes[:1]
		}), []string{"spec.policyTypes"}},
		"all ports": {"NetworkPolicy", "workspace", damage(func(p *networkingv1.NetworkPolicy) { p.Spec.Egress[1].Ports = nil }),
			[]string{"spec.egress[1].ports"}},
		"another selector": {"Service", "api", damage(func(s *corev1.Service) { s.Spec.Selector["a"] = "b" }), []string{"spec.selector.a"}},
		"what the API server adds to a Service": {"Service", "api", damage(func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.SessionAffinity = "10.0.0.1", []string{"10.0.0.1"}, "None"
		}), nil},
		"another image": {"Deployment", "api", damage(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = "evil"
		}), []string{"spec.template.spec.containers[0].image"}},
		"scaled by hand": {"Deployment", "api", damage(func(d *appsv1.Deployment) { *d.Spec.Replicas = 9 }), []string{"spec.replicas"}},
		"a token": {"Deployment", "api", damage(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.AutomountServiceAccountToken = new(true)
		}), []string{"spec.template.spec.automountServiceAccountToken"}},
		"a container more": {"Deployment", "api", damage(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "b"})
		}), []string{"spec.template.spec.containers"}},
		"what the API server adds to a Deployment": {"Deployment", "api", damage(func(d *appsv1.Deployment) {
			d.Spec.Strategy.Type, d.Spec.Template.Spec.DNSPolicy = "RollingUpdate", "ClusterFirst"
			d.Annotations["deployment.kubernetes.io/revision"] = "1"
		}), nil},
		"a virtual machine that is held": {"VirtualMachine", "db", damage(func(v *v1alpha1.VirtualMachine) {
			v.Spec.RunStrategy = v1alpha1.RunHalted
		}), []string{"spec.runStrategy"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			child := find(t, lab(), c.kind, c.name)
			live := typed(t, child)
			c.change(live)
			assert.Equal(t, c.want, nilIfEmpty(desired.Differences(child, live)))
			assert.Empty(t, desired.Fixed(child, live), "an apply repairs it")
		})
	}
}

// What is no longer said is taken away by the seal, whichever field it is.
func TestAFieldThatIsLeftOutDiffers(t *testing.T) {
	before := lab()
	before.Spec.Containers[0].Command = []string{"/bin/api"}
	before.Spec.Containers[0].Resources.Limits.CPU = new(resource.MustParse("1"))
	live := typed(t, find(t, before, "Deployment", "api"))
	assert.Equal(t, []string{"metadata.annotations." + v1alpha1.AnnotationAppliedFields},
		desired.Differences(find(t, lab(), "Deployment", "api"), live))
}

// An apply leaves what somebody has added to a list, and is refused where it does not go with ours.
func TestListsThatAreReplaced(t *testing.T) {
	port := func(number int32) corev1.ServicePort { return corev1.ServicePort{Name: "tcp-80", Port: number} }
	ports := map[string]any{"spec": map[string]any{"ports": []any{
		map[string]any{"name": "tcp-80", "port": int64(80), "protocol": "TCP", "targetPort": int64(80)},
	}}}
	service, live := find(t, lab(), "Service", "api"), typed(t, find(t, lab(), "Service", "api")).(*corev1.Service)
	assert.Nil(t, desired.Lists(service, live, false))
	assert.Nil(t, desired.Lists(service, live, true))
	live.Spec.Ports[0] = port(81)
	assert.Nil(t, desired.Lists(service, live, false), "an apply has been taken: it is a webhook's")
	assert.Equal(t, ports, desired.Lists(service, live, true))
	live.Spec.Ports = append(live.Spec.Ports, port(82))
	assert.Equal(t, ports, desired.Lists(service, live, false))
	live.Spec.Selector["a"] = "b"
	assert.Equal(t, ports, desired.Lists(service, live, true), "a selector is no list")

	w := lab()
	w.Spec.Containers[0].Env = []v1alpha1.WorkspaceEnvVar{{Name: "A", Value: "1"}}
	deployment := find(t, w, "Deployment", "api")
	pods := typed(t, deployment).(*appsv1.Deployment)
	container := &pods.Spec.Template.Spec.Containers[0]
	container.Env = append(container.Env, corev1.EnvVar{Name: "B"})
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	replaced, _, _ := unstructured.NestedSlice(desired.Lists(deployment, pods, false), "spec", "template", "spec", "containers")
	assert.Equal(t, containers, replaced, "the outermost list")
	container.Env, container.Image = container.Env[:1], "mirror/api:1"
	assert.Nil(t, desired.Lists(deployment, pods, false))
}

func TestWhatCannotBeChanged(t *testing.T) {
	is := func(change func(*v1alpha1.Workspace)) *v1alpha1.Workspace {
		w := lab()
		change(w)
		return w
	}
	other := is(func(w *v1alpha1.Workspace) { w.Spec.VirtualMachines[0].Spec.VMDiskImageName = "mysql" })
	assert.Equal(t, []string{"spec.vmDiskImageRef.name"}, desired.Fixed(find(t, other, "VirtualMachine", "db"), typed(t, find(t, lab(), "VirtualMachine", "db"))))

	swapped := apitest.Workspace("lab", apitest.Member("api", "postgres"), apitest.Runs("db", "db:1", apitest.Listens(80)))
	for _, name := range []string{"api", "db"} {
		assert.Equal(t, []string{"spec.clusterIP"}, desired.Fixed(find(t, swapped, "Service", name), typed(t, find(t, lab(), "Service", name))),
			"a virtual machine's Service has no address, a container's has one")
	}
	service := typed(t, find(t, lab(), "Service", "api")).(*corev1.Service)
	service.Spec.Ports[0].Port = 81
	assert.Empty(t, desired.Fixed(find(t, lab(), "Service", "api"), service), "the Service keeps its address when a port moves: see Lists")
	deployment := find(t, lab(), "Deployment", "api")
	live := typed(t, deployment).(*appsv1.Deployment)
	live.Spec.Selector.MatchLabels = map[string]string{"a": "b"}
	assert.NotEmpty(t, desired.Fixed(deployment, live))
}

func find(t *testing.T, w *v1alpha1.Workspace, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, child := range desired.Children(w, friends, desired.DefaultSettings()) {
		if child.GetKind() == kind && child.GetName() == name {
			return child
		}
	}
	require.Fail(t, "no such child", "%s %s", kind, name)
	return nil
}

func nilIfEmpty(all []string) []string {
	if len(all) == 0 {
		return nil
	}
	return all
}
