// Package crds holds the generated CustomResourceDefinitions, so that tests and tools install exactly what
// the charts ship.
package crds

import "embed"

// FS holds one YAML file per kind, named <group>_<plural>.yaml, at its root.
//
//go:embed *.yaml
var FS embed.FS
