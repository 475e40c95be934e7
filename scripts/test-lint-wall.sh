#!/usr/bin/env bash
# Shows that the wall around the pure packages holds: each line below, put into a copy of the tree, must make the
# linters complain, and the copy without any of them must not.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
copy="$(mktemp -d)"
trap 'rm -rf "$copy"' EXIT
for path in .golangci.yml go.work apis disk-sync-operator vm-operator workspace-operator; do cp -r "$root/$path" "$copy/"; done

# lint PACKAGE: lints one package of the copy with the linters of the wall.
lint() {
  local mod="${1%%/*}"
  (cd "$copy/$mod" && GOWORK=off "$root/scripts/tool.sh" golangci-lint run --allow-parallel-runners \
    --config "$copy/.golangci.yml" --enable-only depguard,forbidigo --show-stats=false "./${1#*/}/...")
}

# breach PACKAGE IMPORT USE LINTER: the linter must refuse a file of the package with that import and use.
breach() {
  local file="$copy/$1/breach.go" package out
  package="$(basename "$1")"
  printf 'package %s\n\nimport x "%s"\n\nvar _ = %s\n' "$package" "$2" "$3" >"$file"
  if out="$(lint "$1" 2>&1)"; then
    echo "test-lint-wall.sh: $1 may import $2 and use $3" >&2
    return 1
  fi
  if ! grep -q "breach.go.*($4)" <<<"$out"; then
    printf 'test-lint-wall.sh: %s with %s failed, but not by %s:\n%s\n' "$1" "$2" "$4" "$out" >&2
    return 1
  fi
  rm "$file"
  echo "refused by $4: $3 in $1"
}

pure=(apis/drift apis/policy apis/queue)
for name in plan desired status; do pure+=("disk-sync-operator/internal/$name" "vm-operator/internal/$name" "workspace-operator/internal/$name"); done
for package in "${pure[@]}"; do lint "$package"; done

for package in "${pure[@]}"; do
  breach "$package" context 'x.Background()' depguard
  breach "$package" time 'x.Now()' forbidigo
done
breach apis/queue k8s.io/apimachinery/pkg/types 'x.UID("")' depguard
breach apis/ot/v1alpha1 k8s.io/client-go/rest 'x.Config{}' depguard
breach disk-sync-operator/internal/plan os 'x.Args' depguard
breach disk-sync-operator/internal/plan sigs.k8s.io/controller-runtime/pkg/client 'x.ObjectKey{}' depguard
breach disk-sync-operator/internal/plan k8s.io/client-go/rest 'x.Config{}' depguard
breach disk-sync-operator/internal/status github.com/go-logr/logr 'x.Logger{}' depguard
breach disk-sync-operator/internal/desired net/http 'x.DefaultClient' depguard
