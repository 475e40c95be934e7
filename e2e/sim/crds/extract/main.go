// Command extract writes CDI's CRDs as YAML into the current folder. They live as Go strings in a module whose
// dependencies would triple those of e2e, so the module is downloaded and parsed, not imported.
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

const module = "kubevirt.io/containerized-data-importer"

// wanted maps the key in CDI's table to the file to write.
func wanted() map[string]string {
	return map[string]string{
		"cdiconfig":      "cdi.kubevirt.io_cdiconfigs.yaml",
		"datavolume":     "cdi.kubevirt.io_datavolumes.yaml",
		"storageprofile": "cdi.kubevirt.io_storageprofiles.yaml",
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "extract:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: extract <version of " + module + ">")
	}
	source := module + "@" + args[0]
	dir, err := download(source)
	if err != nil {
		return fmt.Errorf("download %s: %w", source, err)
	}
	crds, err := parse(filepath.Join(dir, "pkg", "operator", "resources", "crds_generated.go"))
	if err != nil {
		return err
	}
	for key, file := range wanted() {
		text, ok := crds[key]
		if !ok {
			return fmt.Errorf("%s has no CRD %q", source, key)
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
