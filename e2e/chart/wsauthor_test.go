package chart

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The stage of the workspaces: labs is a namespace for many, vm-images is the operator's image namespace.
const labs, vmImages = "labs", "vm-images"

// The groups, each named after what its members may do besides writing workspaces.
const (
	buildInLabs      = "create-all-in-labs"
	buildEverywhere  = "create-all-everywhere"
	machinesInLabs   = "create-virtualmachines-services-and-policies-in-labs"
	machinesAlone    = "create-virtualmachines-and-policies-in-labs"
	containersInLabs = "create-deployments-services-and-policies-in-labs"
	deploymentsAlone = "create-deployments-and-policies-in-labs"
	provisionAll     = "provision-workspaces"
	provisionMine    = "provision-the-workspace-mine"
	useImages        = "use-images"
	useGolden        = "use-golden"
	createImages     = "create-images"
	readPasswords    = "read-passwords-in-labs"
	readAllInLabs    = "read-secrets-in-labs"
)

func author(groups ...string) person {
	return person{name: "author", groups: groups}
}

// TestAuthorCheckOfWorkspaces writes workspaces on behalf of people who have, and have not, the rights that they need.
func TestAuthorCheckOfWorkspaces(t *testing.T) {
	own, err := harness.OwnCRDs()
	require.NoError(t, err)
	cluster, err := harness.Start(t.Context(), harness.Options{
		CRDs: []string{own}, Controllers: []string{"validatingadmissionpolicy-status-controller"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	c, err := cluster.Client("chart-test")
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}), "where the policy is")
	require.NoError(t, Workspace.Install(t.Context(), c, WithoutOperator))
	grantWorkspaceRights(t, c)
	awaitWorkspaceCheck(t, cluster)

	for name, check := range map[string]func(*testing.T, *harness.Cluster, client.Client){
		"a workspace that is created":                                  workspaceCreations,
		"the refusal says what to ask for":                             workspaceRefusals,
		"a workspace that is changed":                                  workspaceChanges,
		"the operator's status needs no rights":                        workspaceStatus,
		"the policies have no mistakes that the API server sees":       workspacePoliciesAreTyped,
		"the largest workspace is within the budget of the policies":   largestWorkspace,
		"a name that the API server makes takes rights in every space": generatedName,
	} {
		t.Run(name, func(t *testing.T) { check(t, cluster, c) })
	}
}

func grantWorkspaceRights(t *testing.T, c client.Client) {
	t.Helper()
	for _, name := range []string{labs, vmImages} {
		require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	rule := func(group, resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	const ot = otv1alpha1.GroupName
	machines, deployments := rule(ot, "virtualmachines", "create"), rule("apps", "deployments", "create")
	services, policies := rule("", "services", "create"), rule("networking.k8s.io", "networkpolicies", "create")
	for _, g := range []struct {
		namespace, group string
		rules            []rbacv1.PolicyRule
	}{
		{"", authors, []rbacv1.PolicyRule{rule(ot, "workspaces", "create"), rule(ot, "workspaces", "get"), rule(ot, "workspaces", "update"),
			rule(ot, "workspaces", "patch"), rule(ot, "workspaces/status", "patch")}},
		{labs, buildInLabs, []rbacv1.PolicyRule{machines, deployments, services, policies}},
		{"", buildEverywhere, []rbacv1.PolicyRule{machines, deployments, services, policies, rule("", "namespaces", "create")}},
		{labs, machinesInLabs, []rbacv1.PolicyRule{machines, services, policies}},
		{labs, machinesAlone, []rbacv1.PolicyRule{machines, policies}},
		{labs, containersInLabs, []rbacv1.PolicyRule{deployments, services, policies}},
		{labs, deploymentsAlone, []rbacv1.PolicyRule{deployments, policies}},
		{"", provisionAll, []rbacv1.PolicyRule{rule(ot, "workspaces", otv1alpha1.VerbProvision)}},
		{"", provisionMine, []rbacv1.PolicyRule{rule(ot, "workspaces", otv1alpha1.VerbProvision, "mine")}},
		{vmImages, useImages, []rbacv1.PolicyRule{rule(ot, "vmdiskimages", otv1alpha1.VerbUse)}},
		{vmImages, useGolden, []rbacv1.PolicyRule{rule(ot, "vmdiskimages", otv1alpha1.VerbUse, "golden")}},
		{vmImages, createImages, []rbacv1.PolicyRule{rule(ot, "vmdiskimages", "create")}},
		{labs, readPasswords, []rbacv1.PolicyRule{rule("", "secrets", "get", "passwords")}},
		{labs, readAllInLabs, []rbacv1.PolicyRule{rule("", "secrets", "get")}},
	} {
		grant(t, c, g.namespace, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: g.group}, g.rules...)
	}
}

// awaitWorkspaceCheck tries until each policy answers: the API server takes a moment to see a new one, and the rights.
func awaitWorkspaceCheck(t *testing.T, cluster *harness.Cluster) {
	t.Helper()
	builder := author(buildInLabs).client(t, cluster)
	refusals := map[string]*otv1alpha1.Workspace{
		"may not have":         spaceOf("await"),
		"may not use":          spaceOf("await", inLabs, withMachine),
		"may not have made of": spaceOf("await", inLabs, apitest.Member("vm", "", labsImage, templateOf)),
		"may not read":         spaceOf("await", inLabs, secretly("passwords")),
	}
	require.Eventually(t, func() bool {
		for want, w := range refusals {
			err := builder.Create(context.Background(), w.DeepCopy(), client.DryRunAll)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
				return false
			}
		}
		return builder.Create(context.Background(), spaceOf("await", inLabs, withContainer), client.DryRunAll) == nil
	}, activeTimeout, activePoll)
}

// spaceOf is a workspace as a person submits it.
func spaceOf(name string, mods ...apitest.WorkspaceMod) *otv1alpha1.Workspace {
	w := apitest.Workspace(name, mods...)
	w.ObjectMeta = metav1.ObjectMeta{Name: name}
	return w
}

var (
	inLabs        = apitest.Targets(labs)
	withMachine   = apitest.Member("vm", "golden")
	withContainer = apitest.Runs("web", "nginx")
	withPorts     = apitest.Runs("web", "nginx", apitest.Listens(80))
	open          = apitest.WorkspaceSpec(func(s *otv1alpha1.WorkspaceSpec) { s.Network.Isolate = new(false) })
)

// labsImage is an image of the namespace of the children: whoever may create virtual machines there may use it.
func labsImage(s *otv1alpha1.WorkspaceVirtualMachineSpec) {
	s.VMDiskImageRef = &otv1alpha1.VMDiskImageReference{Namespace: labs, Name: "local"}
}

func templateOf(s *otv1alpha1.WorkspaceVirtualMachineSpec) {
	s.VMDiskImageTemplate = &otv1alpha1.VMDiskImageSpec{SourceType: otv1alpha1.SourceBlank, DiskSize: resource.MustParse("1Gi")}
}

// secretly adds a container that takes variables from those Secrets.
func secretly(names ...string) apitest.WorkspaceMod {
	return apitest.Runs("web", "nginx", func(c *otv1alpha1.WorkspaceContainer) {
		for i, name := range names {
			c.Env = append(c.Env, otv1alpha1.WorkspaceEnvVar{Name: fmt.Sprintf("V%d", i), ValueFrom: &otv1alpha1.WorkspaceEnvSource{
				SecretKeyRef: &otv1alpha1.WorkspaceKeySelector{Name: name, Key: "key"},
			}})
		}
	})
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("secret-%d", i)
	}
	return names
}

const (
	noNamespaces  = "may not have namespaces made"
	noMachines    = "may not have virtualmachines.pelotech.ot made"
	noDeployments = "may not have deployments.apps made"
	noServices    = "may not have services made"
	noPolicies    = "may not have networkpolicies.networking.k8s.io made"
	noImage       = "may not use the image vm-images/golden"
	noTemplate    = "may not have made of vmDiskImageTemplate the image vm-images/golden"
)

func workspaceCreations(t *testing.T, cluster *harness.Cluster, _ client.Client) {
	for name, test := range map[string]struct {
		author person
		space  *otv1alpha1.Workspace
		want   string
	}{
		"an empty one needs the right to a namespace":         {author(), spaceOf("a", open), noNamespaces},
		"an empty one elsewhere needs a policy":               {author(), spaceOf("a", inLabs), noPolicies},
		"an empty one elsewhere that is open needs nothing":   {author(), spaceOf("a", inLabs, open), ""},
		"the rights in labs do not help in its own namespace": {author(buildInLabs), spaceOf("a", open, withContainer), "may not have"},
		"the rights in labs":                                  {author(buildInLabs), spaceOf("a", inLabs, withPorts), ""},
		"the rights everywhere":                               {author(buildEverywhere), spaceOf("a", withPorts), ""},
		"the rights everywhere, elsewhere":                    {author(buildEverywhere), spaceOf("a", inLabs, withPorts), ""},
		"a machine without the right":                         {author(containersInLabs, useImages), spaceOf("a", inLabs, withMachine), noMachines},
		"a machine with the right":                            {author(machinesInLabs, useImages), spaceOf("a", inLabs, withMachine), ""},
		"a machine without the right to its Service":          {author(machinesAlone, useImages), spaceOf("a", inLabs, withMachine), noServices},
		"a container without the right":                       {author(machinesInLabs), spaceOf("a", inLabs, withContainer), noDeployments},
		"a container with ports without the right":            {author(deploymentsAlone), spaceOf("a", inLabs, withPorts), noServices},
		"a container without ports":                           {author(deploymentsAlone), spaceOf("a", inLabs, withContainer), ""},

		"leave to provision":                            {author(provisionAll, useImages), spaceOf("a", withPorts, withMachine), ""},
		"leave to provision is for no other namespace":  {author(provisionAll), spaceOf("a", inLabs, withContainer), "may not have"},
		"leave to provision one":                        {author(provisionMine), spaceOf("mine", withPorts), ""},
		"leave to provision another one":                {author(provisionMine), spaceOf("a", withPorts), "may not have"},
		"leave to provision one with a long name":       {author(provisionAll), spaceOf(strings.Repeat("a", 63), withPorts), ""},
		"a long name, with the rights everywhere":       {author(buildEverywhere), spaceOf(strings.Repeat("a", 63), withPorts), ""},
		"leave to provision is none to use an image":    {author(provisionAll), spaceOf("a", withMachine), noImage},
		"leave to provision is none to create an image": {author(provisionAll, useImages), spaceOf("a", apitest.Member("vm", "golden", templateOf)), noTemplate},

		"an image without the right":              {author(buildInLabs), spaceOf("a", inLabs, withMachine), noImage},
		"an image with the right by its name":     {author(buildInLabs, useGolden), spaceOf("a", inLabs, withMachine), ""},
		"an image with the right to another":      {author(buildInLabs, useGolden), spaceOf("a", inLabs, withMachine, apitest.Member("vm-2", "silver")), "may not use the image vm-images/silver"},
		"to create an image is not to use it":     {author(buildInLabs, createImages), spaceOf("a", inLabs, withMachine), noImage},
		"an image of the children's namespace":    {author(buildInLabs), spaceOf("a", inLabs, apitest.Member("vm", "", labsImage)), ""},
		"a template without the right":            {author(buildInLabs, useImages), spaceOf("a", inLabs, apitest.Member("vm", "golden", templateOf)), noTemplate},
		"a template with the right":               {author(buildInLabs, useImages, createImages), spaceOf("a", inLabs, apitest.Member("vm", "golden", templateOf)), ""},
		"a template in the children's namespace":  {author(buildInLabs, createImages), spaceOf("a", inLabs, apitest.Member("vm", "", labsImage, templateOf)), "the image labs/local"},
		"an image of a namespace without a right": {author(buildEverywhere, useImages), spaceOf("a", apitest.Member("vm", "", labsImage)), "may not use the image labs/local"},

		"a Secret without the right":           {author(buildInLabs), spaceOf("a", inLabs, secretly("passwords")), "may not read the Secret passwords"},
		"a Secret with the right by its name":  {author(buildInLabs, readPasswords), spaceOf("a", inLabs, secretly("passwords")), ""},
		"one of two Secrets without the right": {author(buildInLabs, readPasswords), spaceOf("a", inLabs, secretly("passwords", "keys")), "may not read the Secret keys"},
		"a Secret twice":                       {author(buildInLabs, readPasswords), spaceOf("a", inLabs, secretly("passwords", "passwords")), ""},
		"many Secrets with the right to all":   {author(buildInLabs, readAllInLabs), spaceOf("a", inLabs, secretly(numbered(40)...)), ""},
		"many Secrets without the right":       {author(buildInLabs), spaceOf("a", inLabs, secretly(numbered(40)...)), "may not read the Secret secret-0"},
		"a Secret of its own namespace":        {author(provisionAll), spaceOf("a", secretly("passwords")), ""},
		"a Secret there without leave":         {author(buildEverywhere), spaceOf("a", secretly("passwords")), "may not read the Secret passwords in the namespace ws-a"},
	} {
		t.Run(name, func(t *testing.T) {
			judge(t, test.author.client(t, cluster).Create(t.Context(), test.space, client.DryRunAll), test.want)
		})
	}
}

func judge(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		assert.NoError(t, err)
		return
	}
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, "pelotech.ot/author-check: author ")
	assert.ErrorContains(t, err, want)
}

func workspaceRefusals(t *testing.T, cluster *harness.Cluster, _ client.Client) {
	refused := func(w *otv1alpha1.Workspace, groups ...string) error {
		return author(groups...).client(t, cluster).Create(t.Context(), w, client.DryRunAll)
	}
	assert.ErrorContains(t, refused(spaceOf("a", inLabs, open, withContainer)), "pelotech.ot/author-check: author may not have deployments.apps made "+
		"in the namespace labs: ask for a role with the verb create on the resource deployments.apps in the namespace labs")
	assert.ErrorContains(t, refused(spaceOf("a")), "ask for a role with the verb create on the resource namespaces, or with the verb provision "+
		"on the resource workspaces.pelotech.ot, name a")
	assert.ErrorContains(t, refused(spaceOf("a", withMachine), provisionAll), "author may not use the image vm-images/golden: ask for a role with "+
		"the verb use on the resource vmdiskimages.pelotech.ot, name golden, in the namespace vm-images")
	assert.ErrorContains(t, refused(spaceOf("a", apitest.Member("vm", "golden", templateOf)), provisionAll, useImages), "the verb create on the resource "+
		"vmdiskimages.pelotech.ot, name golden, in the namespace vm-images, or leave out the template")
	assert.ErrorContains(t, refused(spaceOf("a", inLabs, secretly("passwords")), buildInLabs), "may not read the Secret passwords in the namespace labs: "+
		"ask for a role with the verb get on the resource secrets, name passwords, in the namespace labs")
}

func workspaceChanges(t *testing.T, cluster *harness.Cluster, c client.Client) {
	spec := apitest.WorkspaceSpec
	for name, test := range map[string]struct {
		author person
		change apitest.WorkspaceMod
		want   string
	}{
		"nothing":                          {author(), func(*otv1alpha1.Workspace) {}, ""},
		"a label":                          {author(), func(w *otv1alpha1.Workspace) { w.Labels = map[string]string{"a": "b"} }, ""},
		"a finalizer":                      {author(), func(w *otv1alpha1.Workspace) { w.Finalizers = []string{"example.com/hold"} }, ""},
		"the timeout":                      {author(), spec(func(s *otv1alpha1.WorkspaceSpec) { s.ProvisioningTimeout = &metav1.Duration{} }), ""},
		"a member less of each kind":       {author(), spec(func(s *otv1alpha1.WorkspaceSpec) { s.VirtualMachines, s.Containers = nil, nil }), ""},
		"a container more":                 {author(), apitest.Runs("more", "nginx"), noDeployments},
		"a container more, with the right": {author(deploymentsAlone), apitest.Runs("more", "nginx"), ""},
		"a container's image":              {author(machinesInLabs, readPasswords), spec(func(s *otv1alpha1.WorkspaceSpec) { s.Containers[0].Image = "other" }), noDeployments},
		"a container's image, and it has a Secret":   {author(containersInLabs), spec(func(s *otv1alpha1.WorkspaceSpec) { s.Containers[0].Image = "other" }), "may not read the Secret passwords"},
		"a container's image, with both rights":      {author(containersInLabs, readPasswords), spec(func(s *otv1alpha1.WorkspaceSpec) { s.Containers[0].Image = "other" }), ""},
		"a machine more":                             {author(useImages), apitest.Member("more", "golden"), noMachines},
		"a machine more, without its image":          {author(machinesInLabs), apitest.Member("more", "golden"), noImage},
		"a machine more, with both rights":           {author(machinesInLabs, useGolden), apitest.Member("more", "golden"), ""},
		"the memory of a machine, image as it was":   {author(machinesInLabs), spec(func(s *otv1alpha1.WorkspaceSpec) { s.VirtualMachines[0].Spec.BaseVM = "x" }), ""},
		"the memory of a machine, without the right": {author(useImages), spec(func(s *otv1alpha1.WorkspaceSpec) { s.VirtualMachines[0].Spec.BaseVM = "x" }), noMachines},
		"the image of a machine":                     {author(machinesInLabs, useGolden), spec(func(s *otv1alpha1.WorkspaceSpec) { s.VirtualMachines[0].Spec.VMDiskImageName = "silver" }), "may not use the image vm-images/silver"},
		"the name of a machine":                      {author(machinesInLabs), spec(func(s *otv1alpha1.WorkspaceSpec) { s.VirtualMachines[0].Name = "renamed" }), noImage},
		"a template that comes":                      {author(machinesInLabs, useGolden), spec(func(s *otv1alpha1.WorkspaceSpec) { templateOf(&s.VirtualMachines[0].Spec) }), noTemplate},
		"a template that comes, with the right":      {author(machinesInLabs, createImages), spec(func(s *otv1alpha1.WorkspaceSpec) { templateOf(&s.VirtualMachines[0].Spec) }), ""},
		"the end of the isolation":                   {author(), open, noPolicies},
		"a friend": {author(), spec(func(s *otv1alpha1.WorkspaceSpec) {
			s.Network.AllowFrom = []otv1alpha1.WorkspaceFriend{{Workspace: "b"}}
		}), noPolicies},
		"a friend, with the right in this one's space": {author(deploymentsAlone), spec(func(s *otv1alpha1.WorkspaceSpec) {
			s.Network.AllowFrom = []otv1alpha1.WorkspaceFriend{{Workspace: "b"}}
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := spaceOf("", inLabs, withMachine, secretly("passwords"))
			w.GenerateName = "changed-"
			require.NoError(t, c.Create(t.Context(), w), "as the administrator")
			before := w.DeepCopy()
			test.change(w)
			judge(t, test.author.client(t, cluster).Patch(t.Context(), w, client.MergeFrom(before)), test.want)
		})
	}
}

func workspaceStatus(t *testing.T, cluster *harness.Cluster, c client.Client) {
	w := spaceOf("with-status", withMachine)
	require.NoError(t, c.Create(t.Context(), w))
	status := ac.WorkspaceStatus().WithPhase(otv1alpha1.WorkspaceProvisioning).WithObservedGeneration(w.Generation)
	apply := ac.Workspace(w.Name).WithUID(w.UID).WithResourceVersion(w.ResourceVersion).WithStatus(status)
	err := author().client(t, cluster).Status().Apply(t.Context(), apply, client.FieldOwner("workspace-operator"), client.ForceOwnership)
	require.NoError(t, err)
}

func workspacePoliciesAreTyped(t *testing.T, _ *harness.Cluster, c client.Client) {
	for _, suffix := range []string{"", "-images", "-templates", "-secrets"} {
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		require.Eventually(t, func() bool {
			err := c.Get(context.Background(), client.ObjectKey{Name: Workspace.Name + "-author-check" + suffix}, policy)
			return err == nil && policy.Status.TypeChecking != nil && policy.Status.ObservedGeneration == policy.Generation
		}, patience, activePoll)
		assert.Empty(t, policy.Status.TypeChecking.ExpressionWarnings, suffix)
	}
}

// The API server ends what costs too much, and refuses: everybody could then write small workspaces only.
func largestWorkspace(t *testing.T, cluster *harness.Cluster, c client.Client) {
	everything := author(buildInLabs, useImages, createImages, readAllInLabs)
	largest := func(image string) []apitest.WorkspaceMod {
		mods := []apitest.WorkspaceMod{inLabs}
		for i := range 16 {
			mods = append(mods, apitest.Member(fmt.Sprintf("vm-%d", i), fmt.Sprintf("golden-%d", i), templateOf, func(s *otv1alpha1.WorkspaceVirtualMachineSpec) {
				s.BaseVM = image
				for n := range 32 {
					s.Users = append(s.Users, otv1alpha1.VirtualMachineUser{Name: fmt.Sprintf("user-%d", n), Sudo: strings.Repeat("a", 200)})
				}
			}))
		}
		for i := range 32 {
			mods = append(mods, secretly(numbered(64)...), apitest.WorkspaceSpec(func(s *otv1alpha1.WorkspaceSpec) {
				s.Containers[i].Name, s.Containers[i].Image = fmt.Sprintf("c-%d", i), image
				s.Containers[i].Args = []string{strings.Repeat("a", 4000)}
				apitest.Listens(80, 443)(&s.Containers[i])
			}))
		}
		return mods
	}
	w := spaceOf("largest", largest("one")...)
	require.NoError(t, everything.client(t, cluster).Create(t.Context(), w.DeepCopy(), client.DryRunAll))
	judge(t, author().client(t, cluster).Create(t.Context(), w.DeepCopy(), client.DryRunAll), "may not")

	require.NoError(t, c.Create(t.Context(), w))
	w.Spec = spaceOf("largest", largest("two")...).Spec
	assert.NoError(t, everything.client(t, cluster).Update(t.Context(), w.DeepCopy(), client.DryRunAll), "all of it changes")
	judge(t, author().client(t, cluster).Update(t.Context(), w.DeepCopy(), client.DryRunAll), "may not")
}

func generatedName(t *testing.T, cluster *harness.Cluster, _ client.Client) {
	generated := func() *otv1alpha1.Workspace {
		w := spaceOf("", withContainer)
		w.GenerateName = "a-"
		return w
	}
	assert.NoError(t, author(buildEverywhere).client(t, cluster).Create(t.Context(), generated(), client.DryRunAll))
	assert.NoError(t, author(provisionAll).client(t, cluster).Create(t.Context(), generated(), client.DryRunAll))
	judge(t, author(buildInLabs).client(t, cluster).Create(t.Context(), generated(), client.DryRunAll), "may not have")
}
