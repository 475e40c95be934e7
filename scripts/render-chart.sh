#!/usr/bin/env bash
# Prints a chart's manifests for a namespace: scripts/render-chart.sh CHART NAMESPACE [HELM-ARGUMENT...]
# Useful: --set operator.enabled=false (all but the Deployment), --set importOnce.enabled=true (disk-sync-operator).
set -euo pipefail
if (($# < 2)); then
  echo "render-chart.sh: which chart, and for which namespace? scripts/render-chart.sh disk-sync-operator sync-operator" >&2
  exit 1
fi
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
chart="$1" namespace="$2"
shift 2
exec "$root/scripts/tool.sh" helm template "$chart" "$root/charts/$chart" --namespace "$namespace" "$@"
