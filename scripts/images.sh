#!/usr/bin/env bash
# Builds the operators' images from the root of the repository, or one of them: OPERATOR=vm-operator IMAGE=name:tag
# scripts/images.sh. IMAGE alone names that of the disk-sync-operator.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
operators=(disk-sync-operator vm-operator workspace-operator)
if [[ -n "${OPERATOR:-}" ]]; then operators=("$OPERATOR"); elif [[ -n "${IMAGE:-}" ]]; then operators=(disk-sync-operator); fi

for builder in docker podman; do
  if command -v "$builder" >/dev/null && "$builder" info >/dev/null 2>&1; then
    for operator in "${operators[@]}"; do
      version="$(sed -n 's/^appVersion: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "charts/$operator/Chart.yaml")"
      "$builder" build -f "$operator/Dockerfile" -t "${IMAGE:-ghcr.io/pelotech/open-terrain/$operator:$version}" .
    done
    exit 0
  fi
done
echo "images.sh: neither docker nor podman can build here: install one of them, and see that its daemon runs" >&2
exit 1
