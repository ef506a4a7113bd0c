{{- define "ophion.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "ophion.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ophion.labels" -}}
{{ include "ophion.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "ophion.check" -}}
{{- if not (or .Values.genesis .Values.genesisConfigMap) -}}
{{- fail "Set genesis (content of the file) or genesisConfigMap." -}}
{{- end -}}
{{- if and .Values.validator.keySecret (gt (int .Values.replicas) 1) (not .Values.validator.voteStore) -}}
{{- fail "Several nodes with one validator key need validator.voteStore: without it they could sign two blocks at one height." -}}
{{- end -}}
{{- end -}}
