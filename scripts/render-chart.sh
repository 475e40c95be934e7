#!/usr/bin/env bash
# Prints the chart's manifests for the namespace sync-operator: scripts/render-chart.sh [HELM-ARGUMENT...]
# Useful: --set operator.enabled=false (all but the Deployment), --set importOnce.enabled=true.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
exec "$root/scripts/tool.sh" helm template disk-sync-operator "$root/charts/disk-sync-operator" --namespace sync-operator "$@"
