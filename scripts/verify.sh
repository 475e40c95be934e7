#!/usr/bin/env bash
# Phase 1 writes whatever can be written by a machine, phase 2 only reads, and at the end the tree must be clean:
# what phase 1 changed was not committed. All checks run, so that one run shows all there is to do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=()
step() {
  local start=$SECONDS
  echo "--- $*"
  "$@" || failed+=("$*")
  echo "    $((SECONDS - start)) s"
}

format() { gofmt -l -w $(scripts/modules.sh) e2e/controlplane; }

# Each module alone, as its image is built, and then all of them in the workspace, as an editor sees them.
build_and_vet() {
  local mod
  for mod in $(scripts/modules.sh); do
    (cd "$mod" && GOWORK=off go build ./... && GOWORK=off go vet ./...) || return 1
  done
  go build work
}

scripts_parse() {
  local file
  for file in scripts/*.sh .ci/run; do bash -n "$file" || return 1; done
}

step scripts/generate.sh
step scripts/tidy.sh
step format

step scripts_parse
step scripts/check-go-version.sh
step build_and_vet
step scripts/lint.sh
step scripts/test-lint-wall.sh
step scripts/charts.sh

step scripts/check-clean.sh
if ((${#failed[@]})); then
  echo "verify.sh: failed:" >&2
  printf '  %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "verify.sh: all good after ${SECONDS} s"
