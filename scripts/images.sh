#!/usr/bin/env bash
# Builds the operator's image from the root of the repository: IMAGE=name:tag scripts/images.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version="$(sed -n 's/^appVersion: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' charts/disk-sync-operator/Chart.yaml)"
image="${IMAGE:-ghcr.io/pelotech/open-terrain/disk-sync-operator:$version}"
for builder in docker podman; do
  if command -v "$builder" >/dev/null && "$builder" info >/dev/null 2>&1; then
    exec "$builder" build -f disk-sync-operator/Dockerfile -t "$image" .
  fi
done
echo "images.sh: neither docker nor podman can build here: install one of them, and see that its daemon runs" >&2
exit 1
