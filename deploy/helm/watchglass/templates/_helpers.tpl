{{- define "watchglass.hubConfig" -}}
{{- if .Values.cluster.enabled -}}
{{ .Values.cluster.config }}
{{- else -}}
{{ .Values.hub.config }}
{{- end -}}
{{- end -}}
