package v1alpha1_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

// mayBeLeftOut says which specs of an image are wrong for an image and right for an entry: the policy fills them in.
var mayBeLeftOut = map[string]bool{"no size": true, "s3 without secret": true}

// refusedAsNumbers are sizes that have to be strings in an entry.
var refusedAsNumbers = map[string]bool{"a size as a number": true, "no bytes": true}

// The same table holds, with another field's name before the complaint.
func TestAnEntryIsAcceptedAndRejectedAsAnImageIs(t *testing.T) {
	g := gateOf(t, "datasyncs")
	for name, c := range specs {
		if c.spec == "" || strings.Contains(c.spec, "name:") {
			continue // an entry's name is another thing: see below
		}
		t.Run(name, func(t *testing.T) {
			complaints := strings.Join(g.complaints(t, dataSync(t, "workspaceId: w, vms: [{name: a, "+c.spec+"}]"), nil), "\n")
			if refusedAsNumbers[name] {
				c.want = "spec.diskSize: Invalid value: \"integer\""
			}
			if c.want == "" || mayBeLeftOut[name] {
				assert.Empty(t, complaints)
				return
			}
			assert.Contains(t, complaints, strings.Replace(c.want, "spec.", "spec.vms[0].", 1))
		})
	}
}

func dataSync(t *testing.T, spec string) map[string]any {
	t.Helper()
	return object(t, "{apiVersion: pelotech.ot/v1alpha1, kind: DataSync, metadata: {name: a}, spec: {"+spec+"}}")
}

func TestDataSyncsThatAreAcceptedAndRejected(t *testing.T) {
	const entry = "{name: a, sourceType: blank, diskSize: 1Gi}"
	one := func(fields string) string { return "workspaceId: w, vms: [{sourceType: blank" + fields + "}]" }
	many := func(n int) string {
		var entries []string
		for i := range n {
			entries = append(entries, "{sourceType: blank, name: e"+strings.Repeat("x", i%50)+"-"+strings.Repeat("y", i/50)+"0}")
		}
		return "workspaceId: w, vms: [" + strings.Join(entries, ", ") + "]"
	}
	const badID = "workspaceId must be letters, digits"
	cases := map[string]struct{ spec, want string }{
		"an entry":                   {"workspaceId: '035', vms: [" + entry + "]", ""},
		"an id of letters":           {"workspaceId: Lab_1.a-b, vms: [" + entry + "]", ""},
		"no spec":                    {"", "spec.workspaceId: Required"},
		"no id":                      {"vms: [" + entry + "]", "spec.workspaceId: Required"},
		"an id without quotes":       {"workspaceId: 35, vms: [" + entry + "]", "spec.workspaceId"},
		"an empty id":                {"workspaceId: '', vms: [" + entry + "]", "spec.workspaceId"},
		"an id with a space":         {"workspaceId: 'a b', vms: [" + entry + "]", badID},
		"an id that ends in a dash":  {"workspaceId: a-, vms: [" + entry + "]", badID},
		"an id of 64":                {"workspaceId: " + strings.Repeat("a", 64) + ", vms: [" + entry + "]", "spec.workspaceId: Too long"},
		"no list":                    {"workspaceId: w", "spec.vms: Required"},
		"an empty list":              {"workspaceId: w, vms: []", "spec.vms"},
		"a hundred entries":          {many(100), ""},
		"a hundred and one":          {many(101), "spec.vms: Too many"},
		"a name twice":               {"workspaceId: w, vms: [" + entry + ", " + entry + "]", "spec.vms[1]: Duplicate value"},
		"an entry without a name":    {one(""), "spec.vms[0].name: Required"},
		"an entry without a source":  {"workspaceId: w, vms: [{name: a}]", "spec.vms[0].sourceType: Required"},
		"a name with a dash":         {one(", name: a-b"), ""},
		"a name of 63":               {one(", name: " + strings.Repeat("a", 63)), ""},
		"a name of 64":               {one(", name: " + strings.Repeat("a", 64)), "spec.vms[0].name: Too long"},
		"an empty name":              {one(", name: ''"), "spec.vms[0].name"},
		"a name with a dot":          {one(", name: a.b"), badName},
		"a name in capitals":         {one(", name: VM"), badName},
		"a name that ends in a dash": {one(", name: a-"), badName},
		"all fields": {"workspaceId: w, vms: [{" + http + ", name: a, secretRef: k, certConfigMap: c, storageClass: s, snapshotClass: v, " +
			"accessModes: [ReadWriteOnce], volumeMode: Block, volumePolicy: DeleteAfterSnapshot, unusedTTL: 72h, allowedNamespaces: {from: All}}]", ""},
	}
	g := gateOf(t, "datasyncs")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obj := dataSync(t, c.spec)
			complaints := strings.Join(g.complaints(t, obj, nil), "\n")
			if c.want != "" {
				assert.Contains(t, complaints, c.want)
				return
			}
			assert.Empty(t, complaints)
			assert.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &v1alpha1.DataSync{}))
		})
	}
}

func TestTheLargestListIsWithinTheBudgetOfItsRules(t *testing.T) {
	var entries []string
	for i := range 100 {
		entries = append(entries, "{name: e"+strings.Repeat("x", i%50)+strings.Repeat("y", i/50)+", secretRef: k, sourceType: s3, diskSize: 1Gi, url: 'https://a.example/b/"+strings.Repeat("x", 2020)+"'}")
	}
	assert.Empty(t, gateOf(t, "datasyncs").complaints(t, dataSync(t, "workspaceId: w, vms: ["+strings.Join(entries, ", ")+"]"), nil))
}

// An entry has every field of an image's spec, with the same rules but for what the policy fills in.
func TestAnEntryKeepsUpWithTheImage(t *testing.T) {
	entry, spec := reflect.TypeFor[v1alpha1.DataSyncVM](), reflect.TypeFor[v1alpha1.VMDiskImageSpec]()
	for field := range spec.Fields() {
		_, has := entry.FieldByName(field.Name)
		assert.True(t, has, field.Name)
	}
	images := crd(t, "vmdiskimages").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	entries := *crd(t, "datasyncs").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["vms"].Items.Schema
	var want apiextensionsv1.ValidationRules
	for _, rule := range images.XValidations {
		if !strings.Contains(rule.Message, "secretRef is required") && !strings.Contains(rule.Message, "immutable") {
			want = append(want, rule)
		}
	}
	assert.Equal(t, want, entries.XValidations)
	for name, field := range images.Properties {
		for i := range field.XValidations { // the diskSize of an entry is a string: an int-or-string is too costly for a list
			field.XValidations[i].Rule = strings.ReplaceAll(field.XValidations[i].Rule, "string(self)", "self")
		}
		assert.Equal(t, field.XValidations, entries.Properties[name].XValidations, name)
		assert.Equal(t, field.Enum, entries.Properties[name].Enum, name)
	}
}

func TestDataSyncNamesAndColumns(t *testing.T) {
	spec := crd(t, "datasyncs").Spec
	assert.Equal(t, []string{"dsync"}, spec.Names.ShortNames)
	assert.Equal(t, []string{"ot"}, spec.Names.Categories)
	assert.Equal(t, apiextensionsv1.NamespaceScoped, spec.Scope)
	assert.NotNil(t, spec.Versions[0].Subresources.Status)
	var columns, wide []string
	for _, c := range spec.Versions[0].AdditionalPrinterColumns {
		if c.Priority == 0 {
			columns = append(columns, c.Name)
		} else {
			wide = append(wide, c.Name)
		}
	}
	assert.Equal(t, []string{"Phase", "Ready", "Failed", "Age"}, columns)
	assert.Equal(t, []string{"Message"}, wide)
}

func TestTheExampleOfADataSync(t *testing.T) {
	raw, err := os.ReadFile("testdata/datasync.yaml")
	require.NoError(t, err)
	assert.Empty(t, gateOf(t, "datasyncs").complaints(t, object(t, string(raw)), nil))
}

func TestDataSyncImageNames(t *testing.T) {
	long := strings.Repeat("a", 250)
	assert.Equal(t, "sync-workspace-123-attacker", v1alpha1.DataSyncImageName("sync-workspace-123", "attacker"))
	assert.Regexp(t, "^lab-web-server-[0-9a-f]{8}$", v1alpha1.DataSyncImageName("lab", "web-server"))
	assert.NotEqual(t, v1alpha1.DataSyncImageName("a-b", "c"), v1alpha1.DataSyncImageName("a", "b-c"))
	assert.NotEqual(t, v1alpha1.DataSyncImageName("a-b-c", "d"), v1alpha1.DataSyncImageName("a", "b-c-d"))
	assert.Regexp(t, "^lab-0123abcd-[0-9a-f]{8}$", v1alpha1.DataSyncImageName("lab", "0123abcd"), "not to be taken for the hash of lab's entries")
	assert.NotEqual(t, v1alpha1.DataSyncImageName(long, "abc"), v1alpha1.DataSyncImageName(long, "abd"))
	assert.Len(t, v1alpha1.DataSyncImageName(long, "b"), 252)
}

func TestDataSyncImageNamesAreValidAndUnique(t *testing.T) {
	part := rapid.StringMatching(`[a-f0-9]([-a-f0-9]{0,9}[a-f0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		type pair struct{ dataSync, entry string }
		names := map[string]pair{}
		for range 20 {
			p := pair{strings.Repeat(part.Draw(t, "prefix")+".", rapid.IntRange(0, 20).Draw(t, "parts")) + part.Draw(t, "name"), part.Draw(t, "entry")}
			name := v1alpha1.DataSyncImageName(p.dataSync, p.entry)
			assert.Empty(t, validation.IsDNS1123Subdomain(name), name)
			if other, taken := names[name]; taken && other != p {
				t.Fatalf("%s is both %v and %v", name, other, p)
			}
			names[name] = p
		}
	})
}
