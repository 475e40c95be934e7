#!/usr/bin/env bash
# Lints modules, each alone as its image is built: scripts/lint.sh [MODULE...]. Default: all of the workspace.
# FIX=1 repairs what the linters can repair.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root="$PWD"
if (($# == 0)); then mapfile -t modules < <(scripts/modules.sh); else modules=("$@"); fi

fix=()
if [[ "${FIX:-}" == 1 ]]; then fix=(--fix); fi

# All modules are linted, so that one complaint does not hide another.
failed=0
for mod in "${modules[@]}"; do
  echo "lint $mod"
  (cd "$mod" && GOWORK=off "$root/scripts/tool.sh" golangci-lint run --allow-parallel-runners \
    --config "$root/.golangci.yml" "${fix[@]}" ./...) || failed=1
done
exit "$failed"
