{{- define "realcli.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "realcli.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "realcli.name" .) }}
{{- end }}

{{- define "realcli.selector" -}}
app.kubernetes.io/name: realcli-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Not managed-by=realcli: that label marks what the operator itself makes. */ -}}
{{- define "realcli.labels" -}}
{{ include "realcli.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
