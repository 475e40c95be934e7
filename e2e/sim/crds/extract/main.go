// Command extract writes the CRDs of CDI or KubeVirt as YAML into the current folder. They live as Go strings in modules
// whose dependencies would triple those of e2e, so the module is downloaded and parsed, not imported.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// origin is a module with a table of CRDs, or of their schemas.
type origin struct {
	module, file string
	// wanted maps the key in the table to the file to write.
	wanted map[string]string
	// complete makes a CRD of what the table has.
	complete func(key, text string) (string, error)
}

func origins() map[string]origin {
	return map[string]origin{
		"cdi": {
			module: "kubevirt.io/containerized-data-importer", file: "pkg/operator/resources/crds_generated.go",
			wanted: map[string]string{
				"cdiconfig":      "cdi.kubevirt.io_cdiconfigs.yaml",
				"datavolume":     "cdi.kubevirt.io_datavolumes.yaml",
				"storageprofile": "cdi.kubevirt.io_storageprofiles.yaml",
			},
			complete: func(_, text string) (string, error) { return text, nil },
		},
		"kubevirt": {
			module: "kubevirt.io/kubevirt", file: "pkg/virt-operator/resource/generate/components/validations_generated.go",
			wanted: map[string]string{
				"virtualmachine":         "kubevirt.io_virtualmachines.yaml",
				"virtualmachineinstance": "kubevirt.io_virtualmachineinstances.yaml",
			},
			complete: frame,
		},
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "extract:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: extract cdi|kubevirt VERSION")
	}
	from, known := origins()[args[0]]
	if !known {
		return fmt.Errorf("%s is neither cdi nor kubevirt", args[0])
	}
	source := from.module + "@" + args[1]
	dir, err := download(source)
	if err != nil {
		return fmt.Errorf("download %s: %w", source, err)
	}
	crds, err := parse(filepath.Join(dir, filepath.FromSlash(from.file)))
	if err != nil {
		return err
	}
	for key, file := range from.wanted {
		text, ok := crds[key]
		if !ok {
			return fmt.Errorf("%s has no CRD %q", source, key)
		}
		if text, err = from.complete(key, text); err != nil {
			return fmt.Errorf("%s of %s: %w", key, source, err)
		}
		text = "# Extracted from " + source + " by go generate; do not edit.\n" + text
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func download(source string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", source)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return "", err
	}
	return found.Dir, nil
}

// parse returns the entries of the one map[string]string literal in the file.
func parse(path string) (map[string]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	crds := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, isKey := pair.Key.(*ast.BasicLit)
		if !isKey {
			return true
		}
		name, errName := strconv.Unquote(key.Value)
		text, errText := stringOf(pair.Value)
		if errName != nil || errText != nil {
			err = errors.Join(err, errName, errText)
			return false
		}
		crds[name] = text
		return false
	})
	return crds, err
}

// stringOf evaluates a string literal or a sum of them: raw strings that hold backquotes are sums.
func stringOf(e ast.Expr) (string, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.BinaryExpr:
		left, err := stringOf(e.X)
		if err != nil {
			return "", err
		}
		right, err := stringOf(e.Y)
		return left + right, err
	default:
		return "", fmt.Errorf("%T is not a string", e)
	}
}
