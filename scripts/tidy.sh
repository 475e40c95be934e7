#!/usr/bin/env bash
# Tidies every module alone: with the workspace on, go mod tidy would hide what a module lacks by itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for mod in $(scripts/modules.sh) e2e/controlplane scripts/tools; do
  (cd "$mod" && GOWORK=off go mod tidy)
done
