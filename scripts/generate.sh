#!/usr/bin/env bash
# Writes everything that is generated: go.work, deepcopy, apply configurations, CRDs, RBAC and the chart's copies.
# A file whose content would not change is left untouched, so that builds beside it are not disturbed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root="$PWD"
export GOWORK=off

# Modules at the top are the workspace; e2e/controlplane and scripts/tools stay outside it, so that their
# dependencies never choose ours.
workspace_modules() {
  local mod
  for mod in */go.mod; do dirname "$mod"; done
}

# put FILE: writes standard input to FILE if that changes it.
put() {
  local new
  new="$(mktemp)"
  cat >"$new"
  if ! cmp -s "$new" "$1"; then
    mkdir -p "$(dirname "$1")"
    cat "$new" >"$1"
    echo "generate.sh: wrote $1"
  fi
  rm -f "$new"
}

gen_workspace() {
  local mod
  {
    sed -n '/^go /p' apis/go.mod
    printf '\nuse (\n'
    for mod in $(workspace_modules); do printf '\t./%s\n' "$mod"; done
    printf ')\n'
  } | put go.work
}

# controller-gen needs a loaded package, so the older output must stay until the newer one is there; what was not
# written again is stale and goes.
gen_code() {
  local start
  start="$(mktemp)"
  (
    cd apis
    "$root/scripts/tool.sh" controller-gen object paths=./ot/...
    "$root/scripts/tool.sh" controller-gen applyconfiguration paths=./ot/...
  )
  find apis -path '*/applyconfiguration/*' -name '*.go' ! -newer "$start" -print -delete
  rm -f "$start"
}

# afford CRD-FILE: rules that a VirtualMachine can have cost more than the API server admits where they are those of a list of
# them. A quantity is then a string of at most 32 characters, and not an integer or a string of any length; a public key is
# judged by a pattern, and not by CEL.
afford() {
  awk '/^ *anyOf:$/ { skip = 3 }
    skip-- > 0 { next }
    { sub(/pattern: \^\(\\\+\|-\).*/, "maxLength: 32"); sub(/x-kubernetes-int-or-string: true/, "type: string"); gsub(/string\(self\)/, "self"); print }' \
    "$1" >"$1.short"
  sed -e '/^ *ssh_authorized_keys:$/,/maxItems:/{' \
    -e 's/^\( *\)type: string$/\1pattern: ^[^\\p{Cc}\\p{Zl}\\p{Zp}]+$\n&/' -e '/x-kubernetes-validations:/,/rule:/d' -e '}' "$1.short" >"$1"
  rm "$1.short"
}

gen_crds() {
  local out file
  out="$(mktemp -d)"
  (cd apis && "$root/scripts/tool.sh" controller-gen crd:crdVersions=v1 paths=./ot/... output:crd:dir="$out")
  afford "$out/pelotech.ot_workspaces.yaml"
  for file in "$out"/*.yaml; do put "apis/crds/$(basename "$file")" <"$file"; done
  for file in apis/crds/*.yaml; do
    if [[ ! -e "$out/$(basename "$file")" ]]; then rm "$file"; fi
  done
  rm -rf "$out"
}

# chart_crd CHART CRD-FILE: the CRD as a template, because Helm never upgrades a chart's crds/ folder.
chart_crd() {
  local crd="apis/crds/$2" to
  to="charts/$1/templates/crd-${2#*_}"
  if grep -q '{{' "$crd"; then
    echo "generate.sh: $crd holds {{, which Helm would read as a template" >&2
    return 1
  fi
  {
    echo '{{- /* Generated from apis/crds by scripts/generate.sh. DO NOT EDIT. */ -}}'
    echo '{{- if .Values.crds.install }}'
    sed -e '/^---$/d' -e 's|^  annotations:$|&\n    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}|' "$crd"
    echo '{{- end }}'
  } | put "${to%.yaml}.generated.yaml"
}

# chart_rbac OPERATOR: the ClusterRole and Role from the markers of the operator's controllers. A marker with
# namespace=... ends in the Role of the operator's own namespace, whatever its name is at installation.
chart_rbac() {
  local out glued
  if [[ ! -d "$1/internal/controller" ]]; then return 0; fi
  # controller-gen passes over markers inside a doc comment, without a word.
  glued="$(grep -rn --include='*.go' -A1 '^// +kubebuilder:rbac' "$1" | grep -E -- '-[0-9]+-.' || true)"
  if [[ -n "$glued" ]]; then
    printf 'generate.sh: an empty line must follow a block of kubebuilder:rbac markers, above the doc comment:\n%s\n' "$glued" >&2
    return 1
  fi
  out="$(mktemp -d)"
  (cd "$1" && "$root/scripts/tool.sh" controller-gen rbac:roleName=generated paths=./... output:rbac:dir="$out")
  if [[ ! -e "$out/role.yaml" ]]; then
    echo "generate.sh: $1 has no kubebuilder:rbac marker" >&2
    return 1
  fi
  {
    echo "{{- /* Generated from the kubebuilder:rbac markers of $1 by scripts/generate.sh. DO NOT EDIT. */ -}}"
    sed -e "s|^  name: generated\$|  name: {{ include \"$1.fullname\" . }}\n  labels:\n    {{- include \"$1.labels\" . \| nindent 4 }}|" \
      -e 's|^  namespace: .*$|  namespace: {{ .Release.Namespace }}|' "$out/role.yaml"
  } | put "charts/$1/templates/rbac.generated.yaml"
  rm -rf "$out"
}

gen_workspace
gen_code
gen_crds
chart_crd disk-sync-operator pelotech.ot_vmdiskimages.yaml
chart_crd disk-sync-operator pelotech.ot_datasyncs.yaml
chart_crd vm-operator pelotech.ot_virtualmachines.yaml
chart_crd workspace-operator pelotech.ot_workspaces.yaml
chart_rbac disk-sync-operator
chart_rbac vm-operator
chart_rbac workspace-operator
