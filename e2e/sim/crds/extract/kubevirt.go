package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// frame puts the schema of a kind of KubeVirt into a CRD, as virt-operator does: KubeVirt generates the schemas only.
func frame(singular, schema string) (string, error) {
	var validation map[string]any
	if err := yaml.Unmarshal([]byte(schema), &validation); err != nil {
		return "", err
	}
	strip(validation)
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s.kubevirt.io", Labels: map[string]string{"kubevirt.io": ""}},
		Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Group: "kubevirt.io", Scope: apiextensionsv1.NamespaceScoped, Names: names(singular)},
	}
	version := apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Served: true, Storage: true, AdditionalPrinterColumns: columns(singular)}
	if singular == "virtualmachine" { // an instance's status is written with the rest of it
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return "", err
	}
	delete(object, "status")
	versions, _, err := unstructured.NestedSlice(object, "spec", "versions")
	if err != nil {
		return "", err
	}
	versions[0].(map[string]any)["schema"] = validation //nolint:forcetypeassert // it was made above
	if err := unstructured.SetNestedSlice(object, versions, "spec", "versions"); err != nil {
		return "", err
	}
	text, err := yaml.Marshal(object)
	return string(text), err
}

func names(singular string) apiextensionsv1.CustomResourceDefinitionNames {
	all := map[string]apiextensionsv1.CustomResourceDefinitionNames{
		"virtualmachine":         {Kind: "VirtualMachine", ShortNames: []string{"vm", "vms"}},
		"virtualmachineinstance": {Kind: "VirtualMachineInstance", ShortNames: []string{"vmi", "vmis"}},
	}[singular]
	all.Singular, all.Plural, all.ListKind, all.Categories = singular, singular+"s", all.Kind+"List", []string{"all"}
	return all
}

func columns(singular string) []apiextensionsv1.CustomResourceColumnDefinition {
	age := apiextensionsv1.CustomResourceColumnDefinition{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"}
	ready := apiextensionsv1.CustomResourceColumnDefinition{Name: "Ready", Type: "string", JSONPath: ".status.conditions[?(@.type=='Ready')].status"}
	if singular == "virtualmachine" {
		return []apiextensionsv1.CustomResourceColumnDefinition{age, {Name: "Status", Type: "string", JSONPath: ".status.printableStatus"}, ready}
	}
	return []apiextensionsv1.CustomResourceColumnDefinition{
		age, {Name: "Phase", Type: "string", JSONPath: ".status.phase"}, {Name: "IP", Type: "string", JSONPath: ".status.interfaces[0].ipAddress"},
		{Name: "NodeName", Type: "string", JSONPath: ".status.nodeName"}, ready,
	}
}

// strip takes the descriptions out of a schema. A property of that name is not text, and stays.
func strip(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, isText := node["description"].(string); isText {
			delete(node, "description")
		}
		for _, child := range node {
			strip(child)
		}
	case []any:
		for _, child := range node {
			strip(child)
		}
	}
}
