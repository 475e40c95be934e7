package v1alpha1_test

import (
	"os"
	"testing"

	"github.com/pelotech/open-terrain/apis/crds"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// crd reads the generated CustomResourceDefinition that the chart ships, of the kind with that plural.
func crd(t *testing.T, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	raw, err := crds.FS.ReadFile("pelotech.ot_" + plural + ".yaml")
	require.NoError(t, err)
	own := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict(raw, own))
	return own
}

// gate judges objects as the API server does: it prunes, sets defaults, and applies the schema, list types and CEL.
type gate struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	cel        *cel.Validator
}

func newGate(t *testing.T) *gate { return gateOf(t, "vmdiskimages") }

func gateOf(t *testing.T, plural string) *gate {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd(t, plural).Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil))
	structural, err := schema.NewStructural(internal)
	require.NoError(t, err)
	validator, _, err := validation.NewSchemaValidator(internal)
	require.NoError(t, err)
	return &gate{structural: structural, schema: validator, cel: cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// complaints of a create, or of an update when there is an old object.
func (g *gate) complaints(t *testing.T, obj, old map[string]any) []string {
	t.Helper()
	g.admit(obj)
	var errs []string
	var before any
	if old != nil {
		g.admit(old)
		before = old
	}
	for _, err := range validation.ValidateCustomResource(nil, obj, g.schema) {
		errs = append(errs, err.Error())
	}
	for _, err := range listtype.ValidateListSetsAndMaps(nil, g.structural, obj) {
		errs = append(errs, err.Error())
	}
	if len(errs) > 0 {
		return errs
	}
	found, _ := g.cel.Validate(t.Context(), nil, g.structural, obj, before, celconfig.RuntimeCELCostBudget)
	for _, err := range found {
		errs = append(errs, err.Error())
	}
	return errs
}

func (g *gate) admit(obj map[string]any) {
	pruning.Prune(obj, g.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, g.structural)
	defaulting.Default(obj, g.structural)
}

// object reads YAML as the API server does.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	obj := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &obj))
	return integers(obj).(map[string]any)
}

// integers: JSON numbers without a fraction are int64 in the API server.
func integers(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case map[string]any:
		for key := range v {
			v[key] = integers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	}
	return value
}

func TestTheAPIServerTakesTheCRDs(t *testing.T) {
	for _, plural := range []string{"vmdiskimages", "datasyncs", "virtualmachines", "workspaces"} {
		t.Run(plural, func(t *testing.T) {
			internal := &apiextensions.CustomResourceDefinition{}
			own := crd(t, plural)
			apiextensionsv1.SetDefaults_CustomResourceDefinition(own)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&own.Spec)
			require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(own, internal, nil))
			internal.Status.StoredVersions = []string{"v1alpha1"}
			assert.Empty(t, crdvalidation.ValidateCustomResourceDefinition(t.Context(), internal), "among others: the cost of the rules")
		})
	}
}

func TestPrinterColumns(t *testing.T) {
	var columns, wide []string
	for _, c := range crd(t, "vmdiskimages").Spec.Versions[0].AdditionalPrinterColumns {
		if c.Priority == 0 {
			columns = append(columns, c.Name)
		} else {
			wide = append(wide, c.Name)
		}
	}
	assert.Equal(t, []string{"Phase", "Progress", "Attempts", "In-Use", "Age"}, columns)
	assert.Equal(t, []string{"Message"}, wide)
}

func TestNames(t *testing.T) {
	spec := crd(t, "vmdiskimages").Spec
	assert.Equal(t, "pelotech.ot", spec.Group)
	assert.Equal(t, []string{"vmdi"}, spec.Names.ShortNames)
	assert.Equal(t, []string{"ot"}, spec.Names.Categories)
	assert.Equal(t, apiextensionsv1.NamespaceScoped, spec.Scope)
	assert.NotNil(t, spec.Versions[0].Subresources.Status)
}

func TestAManifestThatPeopleWrite(t *testing.T) {
	raw, err := os.ReadFile("testdata/vmdiskimage.yaml")
	require.NoError(t, err)
	obj := object(t, string(raw))
	assert.Empty(t, newGate(t).complaints(t, obj, nil))
	assert.Equal(t, "Retain", obj["spec"].(map[string]any)["volumePolicy"], "defaults are set")
}
