package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// Files of a load's objects below a folder: one file for kubectl, and a chart with the same file for Helm.
type Files struct{ Dir, Load string }

// Plain is the file of all objects.
func (f Files) Plain() string { return filepath.Join(f.Chart(), "templates", "all.yaml") }

// Chart is the folder of the chart.
func (f Files) Chart() string { return filepath.Join(f.Dir, f.Load) }

// Write the objects, in their order.
func (f Files) Write(objects []*unstructured.Unstructured) error {
	var text bytes.Buffer
	for _, object := range objects {
		raw, err := sigsyaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("write %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		text.WriteString("---\n")
		text.Write(raw)
	}
	if err := os.MkdirAll(filepath.Dir(f.Plain()), 0o700); err != nil {
		return err
	}
	about := "apiVersion: v2\nname: " + f.Load + "\nversion: 0.0.1\n"
	if err := os.WriteFile(filepath.Join(f.Chart(), "Chart.yaml"), []byte(about), 0o600); err != nil {
		return err
	}
	return os.WriteFile(f.Plain(), text.Bytes(), 0o600)
}

// Read a file of objects.
func Read(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = object.UnmarshalJSON(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", len(objects)+1, err)
		}
		objects = append(objects, object)
	}
}
