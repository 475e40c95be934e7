{{- define "disk-sync-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "disk-sync-operator.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "disk-sync-operator.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "disk-sync-operator.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "disk-sync-operator.serviceAccountName" -}}
{{- default (include "disk-sync-operator.fullname" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "disk-sync-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "disk-sync-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "disk-sync-operator.labels" -}}
{{ include "disk-sync-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: open-terrain
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "disk-sync-operator.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{- /* "true" where the MutatingAdmissionPolicy is to be installed. */ -}}
{{- define "disk-sync-operator.importOnce" -}}
{{- if eq (toString .Values.importOnce.enabled) "auto" -}}
{{ .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}
{{- else -}}
{{ .Values.importOnce.enabled }}
{{- end }}
{{- end }}
