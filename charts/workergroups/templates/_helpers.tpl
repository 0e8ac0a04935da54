{{- /* One operator serves the whole cluster, so its objects have fixed names. Helm rejects a second release. */}}
{{- define "workergroups.name" -}}
workergroups-operator
{{- end }}

{{- define "workergroups.selector" -}}
app.kubernetes.io/name: {{ include "workergroups.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "workergroups.labels" -}}
{{ include "workergroups.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "workergroups.operatorImage" -}}
{{ required "operator.image is empty: build operator/Dockerfile, push it to your registry and give its reference" .Values.operator.image }}
{{- end }}

{{- define "workergroups.workerImage" -}}
{{ required "worker.image is empty: give the reference of an image with Ray, such as one built from worker_image/Dockerfile" .Values.worker.image }}
{{- end }}

{{- define "workergroups.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "workergroups.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}
