{{- /* Called with a dict of job and component. */ -}}
{{- define "jobs.labels" -}}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/instance: {{ .job.name }}
app.kubernetes.io/managed-by: tegen
app.kubernetes.io/name: torchelastic
app.kubernetes.io/part-of: {{ .job.name }}
app.kubernetes.io/version: {{ .job.image | splitList ":" | last | quote }}
{{- end }}

{{- define "jobs.selector" -}}
app.kubernetes.io/component: worker
app.kubernetes.io/instance: {{ .name }}
{{- end }}
