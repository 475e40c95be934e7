// Package crds holds CDI's CustomResourceDefinitions, as the real CDI installs them, for control planes on which
// the simulator plays CDI. The YAML files are generated.
package crds

//go:generate go run ./extract cdi v1.65.0
