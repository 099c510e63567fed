{{- /* Called with a dict of job and component. */ -}}
{{- define "jobs.labels" -}}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/instance: {{ .job.name }}
app.kubernetes.io/managed-by: tegen
app.kubernetes.io/name: torchelastic
tegen.dev/job: {{ .job.name }}
{{- end }}

{{- /* Those of what runs the image. */ -}}
{{- define "jobs.podLabels" -}}
{{ include "jobs.labels" . }}
app.kubernetes.io/version: {{ .job.image | splitList ":" | last | quote }}
{{- end }}

{{- define "jobs.selector" -}}
app.kubernetes.io/component: worker
tegen.dev/job: {{ .name }}
{{- end }}
