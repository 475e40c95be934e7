#!/usr/bin/env bash
# Runs the tests of modules, each alone (GOWORK=off) as its image is built: scripts/test.sh [MODULE...]
# Default: all of the workspace. RACE=1 adds the race detector, TEST_ARGS goes to go test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if (($# == 0)); then mapfile -t modules < <(scripts/modules.sh); else modules=("$@"); fi
KUBEBUILDER_ASSETS="$(scripts/test-env.sh)"
export KUBEBUILDER_ASSETS GOWORK=off

args=(-timeout 30m)
if [[ "${RACE:-}" == 1 ]]; then args+=(-race); fi
read -ra more <<<"${TEST_ARGS:-}"

# All modules run, so that one failure does not hide another.
failed=()
for mod in "${modules[@]}"; do
  echo "test $mod"
  (cd "$mod" && go test "${args[@]}" "${more[@]}" ./...) || failed+=("$mod")
done
if ((${#failed[@]})); then
  echo "test.sh: failed: ${failed[*]}" >&2
  exit 1
fi
