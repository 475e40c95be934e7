package chart

import (
	"context"
	"testing"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	ac "github.com/pelotech/open-terrain/apis/ot/v1alpha1/applyconfiguration/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The author check's stage: the virtual machines are written in lab, the images are in farm.
const (
	lab, farm = "lab", "farm"
	// authors may write virtual machines in lab, all of them, and nothing else.
	authors = "authors"
)

// person is somebody who writes virtual machines.
type person struct {
	name   string
	groups []string
}

func (p person) client(t *testing.T, cluster *harness.Cluster) client.Client {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: p.name, Groups: append([]string{authors, "system:authenticated"}, p.groups...)}
	c, err := client.New(config, client.Options{Scheme: harness.NewScheme()})
	require.NoError(t, err)
	return c
}

// The people, named after what they may do.
var (
	nobody       = person{name: "nobody"}
	namedUser    = person{name: "use-golden-in-farm"}
	farmUser     = person{name: "use-in-farm"}
	member       = person{name: "a-member", groups: []string{"users-of-farm"}}
	farmCreator  = person{name: "create-in-farm"}
	namedCreator = person{name: "create-golden-in-farm"}
	farmBoth     = person{name: "use-and-create-in-farm"}
	labCreator   = person{name: "create-in-lab"}
	everywhere   = person{name: "use-everywhere"}
)

// TestAuthorCheck writes virtual machines on behalf of people who have, and have not, the rights that they need.
func TestAuthorCheck(t *testing.T) {
	own, err := harness.OwnCRDs()
	require.NoError(t, err)
	// The controller looks through the expressions for fields and functions that do not exist.
	cluster, err := harness.Start(t.Context(), harness.Options{
		CRDs: []string{own}, Controllers: []string{"validatingadmissionpolicy-status-controller"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	c, err := cluster.Client("chart-test")
	require.NoError(t, err)
	require.NoError(t, VM.Install(t.Context(), c, WithoutOperator))
	grantRights(t, c)
	awaitAuthorCheck(t, nobody.client(t, cluster))

	for name, check := range map[string]func(*testing.T, *harness.Cluster, client.Client){
		"a virtual machine that is created":                     creations,
		"the refusal says what to ask for":                      refusalNamesTheRight,
		"what has nothing to do with the image needs no rights": otherUpdatesPass,
		"a template that is added or changed later":             laterTemplates,
		"the operator's status needs no rights":                 statusPasses,
		"the policy has no mistakes that the API server sees":   policyIsTyped,
	} {
		t.Run(name, func(t *testing.T) { check(t, cluster, c) })
	}
}

func grantRights(t *testing.T, c client.Client) {
	t.Helper()
	for _, name := range []string{lab, farm} {
		require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	rule := func(resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{otv1alpha1.GroupName}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
	}
	user := func(p person) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: p.name}
	}
	grant(t, c, lab, group(authors), rule("virtualmachines", "*"), rule("virtualmachines/status", "*"))
	grant(t, c, farm, user(namedUser), rule("vmdiskimages", otv1alpha1.VerbUse, "golden"))
	grant(t, c, farm, user(farmUser), rule("vmdiskimages", otv1alpha1.VerbUse))
	grant(t, c, farm, group(member.groups[0]), rule("vmdiskimages", otv1alpha1.VerbUse))
	grant(t, c, farm, user(farmCreator), rule("vmdiskimages", "create"))
	grant(t, c, farm, user(namedCreator), rule("vmdiskimages", otv1alpha1.VerbUse), rule("vmdiskimages", "create", "golden"))
	grant(t, c, farm, user(farmBoth), rule("vmdiskimages", otv1alpha1.VerbUse), rule("vmdiskimages", "create"))
	grant(t, c, lab, user(labCreator), rule("vmdiskimages", "create"))
	grant(t, c, "", user(everywhere), rule("vmdiskimages", otv1alpha1.VerbUse))
}

// grant binds a role of the subject's name in a namespace, or in the whole cluster.
func grant(t *testing.T, c client.Client, namespace string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: subject.Name}
	var role, binding client.Object
	if namespace == "" {
		role = &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
		binding = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}}
	} else {
		role = &rbacv1.Role{ObjectMeta: meta, Rules: rules}
		binding = &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}
	}
	require.NoError(t, c.Create(t.Context(), role))
	require.NoError(t, c.Create(t.Context(), binding))
}

// awaitAuthorCheck tries until the policy answers: the API server takes a moment to see a new one, and the rights.
func awaitAuthorCheck(t *testing.T, c client.Client) {
	t.Helper()
	require.Eventually(t, func() bool {
		passes := c.Create(context.Background(), machine("golden", ""), client.DryRunAll)
		refused := c.Create(context.Background(), machine("golden", farm), client.DryRunAll)
		return passes == nil && apierrors.IsForbidden(refused)
	}, activeTimeout, activePoll)
}

// machine is a virtual machine with that image; no namespace is its own.
func machine(image, namespace string, mods ...func(*otv1alpha1.VirtualMachine)) *otv1alpha1.VirtualMachine {
	vm := &otv1alpha1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, GenerateName: "vm-"},
		Spec:       otv1alpha1.VirtualMachineSpec{VMDiskImageRef: otv1alpha1.VMDiskImageReference{Name: image, Namespace: namespace}},
	}
	for _, mod := range mods {
		mod(vm)
	}
	return vm
}

func templated(vm *otv1alpha1.VirtualMachine) {
	vm.Spec.VMDiskImageTemplate = &otv1alpha1.VMDiskImageSpec{SourceType: otv1alpha1.SourceBlank, DiskSize: resource.MustParse("1Gi")}
}

func creations(t *testing.T, cluster *harness.Cluster, _ client.Client) {
	const useInFarm, createInFarm = "may not use the image farm/golden", "may not have the image farm/golden made"
	for name, test := range map[string]struct {
		author person
		vm     *otv1alpha1.VirtualMachine
		want   string
	}{
		"its own image needs nothing":                   {nobody, machine("golden", ""), ""},
		"its own image by the namespace's name":         {nobody, machine("golden", lab), ""},
		"another's image needs the right":               {nobody, machine("golden", farm), useInFarm},
		"the right by the image's name":                 {namedUser, machine("golden", farm), ""},
		"the right by the name of another image":        {namedUser, machine("silver", farm), "may not use the image farm/silver"},
		"the right in the whole namespace":              {farmUser, machine("silver", farm), ""},
		"the right in another namespace":                {farmUser, machine("golden", "default"), "may not use the image default/golden"},
		"the right of a group":                          {member, machine("golden", farm), ""},
		"the right in the whole cluster":                {everywhere, machine("golden", "no-such-namespace"), ""},
		"to create is not to use":                       {farmCreator, machine("golden", farm), useInFarm},
		"its own template needs the right":              {nobody, machine("golden", "", templated), "may not have the image lab/golden made"},
		"its own template, with the right":              {labCreator, machine("golden", "", templated), ""},
		"its own template, with the right elsewhere":    {farmBoth, machine("golden", "", templated), "may not have the image lab/golden made"},
		"another's template, with neither right":        {nobody, machine("golden", farm, templated), useInFarm},
		"another's template, with the right to use":     {farmUser, machine("golden", farm, templated), createInFarm},
		"another's template, with the right to create":  {farmCreator, machine("golden", farm, templated), useInFarm},
		"another's template, with the right here":       {labCreator, machine("golden", farm, templated), useInFarm},
		"another's template, with both rights":          {farmBoth, machine("golden", farm, templated), ""},
		"another's template, with the right by name":    {namedCreator, machine("golden", farm, templated), ""},
		"another's template, with the right to another": {namedCreator, machine("silver", farm, templated), "may not have the image farm/silver made"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.author.client(t, cluster).Create(t.Context(), test.vm, client.DryRunAll)
			if test.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func refusalNamesTheRight(t *testing.T, cluster *harness.Cluster, _ client.Client) {
	err := nobody.client(t, cluster).Create(t.Context(), machine("golden", farm), client.DryRunAll)
	assert.ErrorContains(t, err, "pelotech.ot/author-check: nobody may not use the image farm/golden: ask for a role with "+
		"the verb use on the resource vmdiskimages.pelotech.ot, name golden, in the namespace farm")
	err = farmUser.client(t, cluster).Create(t.Context(), machine("golden", farm, templated), client.DryRunAll)
	assert.ErrorContains(t, err, "pelotech.ot/author-check: use-in-farm may not have the image farm/golden made of vmDiskImageTemplate: "+
		"ask for a role with the verb create on the resource vmdiskimages.pelotech.ot, name golden, in the namespace farm, or leave out the template")

	_, err = cluster.Kubectl(t.Context(), manifest, "--as", nobody.name, "--as-group", authors, "apply", "--server-side", "-f", "-")
	assert.ErrorContains(t, err, "the verb use on the resource vmdiskimages.pelotech.ot, name golden, in the namespace farm")
}

const manifest = `
apiVersion: pelotech.ot/v1alpha1
kind: VirtualMachine
metadata: {namespace: lab, name: applied}
spec: {vmDiskImageRef: {name: golden, namespace: farm}}
`

// existing creates a virtual machine as the administrator, with an image and a template that nobody else may have.
func existing(t *testing.T, c client.Client, mods ...func(*otv1alpha1.VirtualMachine)) *otv1alpha1.VirtualMachine {
	t.Helper()
	vm := machine("golden", farm, mods...)
	require.NoError(t, c.Create(t.Context(), vm))
	return vm
}

func otherUpdatesPass(t *testing.T, cluster *harness.Cluster, c client.Client) {
	for name, change := range map[string]func(*otv1alpha1.VirtualMachine){
		"nothing":      func(*otv1alpha1.VirtualMachine) {},
		"a label":      func(vm *otv1alpha1.VirtualMachine) { vm.Labels = map[string]string{"a": "b"} },
		"a finalizer":  func(vm *otv1alpha1.VirtualMachine) { vm.Finalizers = []string{"example.com/hold"} },
		"the memory":   func(vm *otv1alpha1.VirtualMachine) { vm.Spec.Resources.Memory = new(resource.MustParse("2Gi")) },
		"the strategy": func(vm *otv1alpha1.VirtualMachine) { vm.Spec.RunStrategy = otv1alpha1.RunHalted },
		"the template, that is taken away": func(vm *otv1alpha1.VirtualMachine) {
			vm.Spec.VMDiskImageTemplate = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			vm := existing(t, c, templated)
			change(vm)
			assert.NoError(t, nobody.client(t, cluster).Update(t.Context(), vm))
		})
	}
}

func laterTemplates(t *testing.T, cluster *harness.Cluster, c client.Client) {
	larger := func(vm *otv1alpha1.VirtualMachine) {
		vm.Spec.VMDiskImageTemplate.DiskSize = resource.MustParse("2Gi")
	}
	const refused = "may not have the image farm/golden made"
	for name, test := range map[string]struct {
		author person
		before []func(*otv1alpha1.VirtualMachine)
		change func(*otv1alpha1.VirtualMachine)
		want   string
	}{
		"is added without rights":                {nobody, nil, templated, refused},
		"is added with the right to use":         {farmUser, nil, templated, refused},
		"is added with the right to create":      {farmCreator, nil, templated, ""},
		"is changed without rights":              {nobody, []func(*otv1alpha1.VirtualMachine){templated}, larger, refused},
		"is changed with the right to create":    {farmCreator, []func(*otv1alpha1.VirtualMachine){templated}, larger, ""},
		"is added with the right to create here": {labCreator, nil, templated, refused},
	} {
		t.Run(name, func(t *testing.T) {
			vm := existing(t, c, test.before...)
			before := vm.DeepCopy()
			test.change(vm)
			err := test.author.client(t, cluster).Patch(t.Context(), vm, client.MergeFrom(before))
			if test.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func statusPasses(t *testing.T, cluster *harness.Cluster, c client.Client) {
	vm := existing(t, c, templated)
	status := ac.VirtualMachineStatus().WithPhase(otv1alpha1.VirtualMachineProvisioning).WithObservedGeneration(vm.Generation)
	apply := ac.VirtualMachine(vm.Name, vm.Namespace).WithUID(vm.UID).WithResourceVersion(vm.ResourceVersion).WithStatus(status)
	err := nobody.client(t, cluster).Status().Apply(t.Context(), apply, client.FieldOwner("vm-operator"), client.ForceOwnership)
	require.NoError(t, err)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(vm), vm))
	assert.Equal(t, otv1alpha1.VirtualMachineProvisioning, vm.Status.Phase)
}

func policyIsTyped(t *testing.T, _ *harness.Cluster, c client.Client) {
	policy := &admissionv1.ValidatingAdmissionPolicy{}
	require.Eventually(t, func() bool {
		err := c.Get(context.Background(), client.ObjectKey{Name: VM.Name + "-author-check"}, policy)
		return err == nil && policy.Status.TypeChecking != nil && policy.Status.ObservedGeneration == policy.Generation
	}, patience, activePoll)
	assert.Empty(t, policy.Status.TypeChecking.ExpressionWarnings)
}
