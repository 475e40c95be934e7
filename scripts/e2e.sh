#!/usr/bin/env bash
# Runs the disk scenarios on an existing cluster with CDI and a snapshotting CSI driver: scripts/e2e.sh KUBECONFIG
# OT_E2E_STORIES=vmscenario runs those of virtual machines instead; they need KubeVirt, with guests, and Multus is not used.
# OT_E2E_STORIES=wsscenario runs those of workspaces; they need OT_E2E_IMAGE, too: an image that the nodes can run.
# OT_E2E_ADDRESS is the address of this machine that pods reach. docs/testing.md says what else is needed.
set -euo pipefail
if [[ ! -r "${1:-}" ]]; then
  echo "usage: make e2e KUBECONFIG=/path/to/kubeconfig (of a cluster with CDI and a snapshotting CSI driver)" >&2
  exit 2
fi
if [[ -z "${OT_E2E_ADDRESS:-}" ]]; then
  echo "e2e.sh: OT_E2E_ADDRESS is not set: an IP address of this machine that pods reach, where test images are served" >&2
  exit 2
fi
KUBECONFIG="$(realpath "$1")"
export KUBECONFIG OT_E2E=existing GOWORK=off
cd "$(dirname "${BASH_SOURCE[0]}")/../e2e"
read -ra more <<<"${TEST_ARGS:-}"
exec go test "./${OT_E2E_STORIES:-scenario}/..." -count=1 -v -timeout 120m "${more[@]}"
