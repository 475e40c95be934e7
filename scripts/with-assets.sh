#!/usr/bin/env bash
# Runs a command in a module's folder with KUBEBUILDER_ASSETS set: scripts/with-assets.sh MODULE COMMAND...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
KUBEBUILDER_ASSETS="$(scripts/test-env.sh)"
export KUBEBUILDER_ASSETS GOWORK=off
cd "$1"
shift
exec "$@"
