#!/usr/bin/env bash
# Lints and renders every chart with its defaults and with everything on, and sees that a bad value is refused.
# scripts/charts.sh [package]: packages them into dist/ as well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
helm=scripts/tool.sh

# refused CHART VALUE: fails if the chart takes it.
refused() {
  if "$helm" helm template x "charts/$1" --set-json "$2" >/dev/null 2>&1; then
    echo "charts.sh: $1 takes $2, which values.schema.json must refuse" >&2
    return 1
  fi
}

for dir in charts/*/; do
  chart="$(basename "$dir")"
  all_on="e2e/chart/testdata/$chart.yaml"
  echo "chart $chart"
  "$helm" helm lint --quiet --strict "$dir"
  "$helm" helm lint --quiet --strict "$dir" --values "$all_on"
  "$helm" helm template x "$dir" >/dev/null
  "$helm" helm template x "$dir" --values "$all_on" >/dev/null
  refused "$chart" 'image.tag="latest"'
  refused "$chart" 'replicas="two"'
  refused "$chart" 'misspelt=1'
  if [[ "${1:-}" == package ]]; then "$helm" helm package "$dir" --destination dist; fi
done
