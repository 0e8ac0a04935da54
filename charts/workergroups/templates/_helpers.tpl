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

{{- /* Of a list: the root context, and the name of one of the release's images. */}}
{{- define "workergroups.releasedImage" -}}
{{- $root := index . 0 }}
{{- $root.Values.image.registry }}/{{ index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- end }}

{{- define "workergroups.operatorImage" -}}
{{ .Values.operator.image | default (include "workergroups.releasedImage" (list . "workergroups-operator")) }}
{{- end }}

{{- define "workergroups.workerImage" -}}
{{ .Values.worker.image | default (include "workergroups.releasedImage" (list . "workergroups-worker")) }}
{{- end }}

{{- define "workergroups.serviceAccount" -}}
{{ .Values.operator.serviceAccount.name | default (include "workergroups.name" .) }}
{{- end }}

{{- /* What the operator's pod and that of `helm test` have in common. */}}
{{- define "workergroups.podSettings" -}}
securityContext:
  {{- toYaml .Values.operator.podSecurityContext | nindent 2 }}
{{- range $name, $value := pick .Values.operator "affinity" "imagePullSecrets" "nodeSelector" "priorityClassName" "tolerations" }}
{{- with $value }}
{{ toYaml (dict $name .) }}
{{- end }}
{{- end }}
{{- end }}
