{{- /* One operator serves the whole cluster, so its objects have fixed names. Helm rejects a second release. */}}
{{- define "workergroups.name" -}}
workergroups-operator
{{- end }}

{{- /* `toYaml` quotes what would be a number otherwise, here and where namespaces are named. */}}
{{- define "workergroups.selector" -}}
app.kubernetes.io/name: {{ include "workergroups.name" . }}
app.kubernetes.io/instance: {{ toYaml .Release.Name }}
{{- end }}

{{- /* Of a text with a version: a label's value, or an image's tag. Flux adds "+" and a commit to the chart's version. */}}
{{- define "workergroups.version" -}}
{{ . | replace "+" "_" | trunc 63 | trimAll "-_." }}
{{- end }}

{{- define "workergroups.labels" -}}
{{ include "workergroups.selector" . }}
app.kubernetes.io/version: {{ include "workergroups.version" .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ include "workergroups.version" (printf "%s-%s" .Chart.Name .Chart.Version) }}
{{- end }}

{{- /* Of a list: the root context, the object's name, and its namespace if it has one. More labels may follow. */}}
{{- define "workergroups.metadata" -}}
metadata:
  name: {{ toYaml (index . 1) }}
  {{- range slice . 2 }}
  namespace: {{ toYaml . }}
  {{- end }}
  labels:
    {{- include "workergroups.labels" (first .) | nindent 4 }}
{{- end }}

{{- /* Of a list like that of "workergroups.metadata", with the kind of the role before its name: who may do what it says. */}}
{{- define "workergroups.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ index . 1 }}Binding
{{ include "workergroups.metadata" (prepend (slice . 2) (first .)) }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ index . 1 }}
  name: {{ index . 2 }}
subjects:
  - kind: ServiceAccount
    name: {{ include "workergroups.serviceAccount" (first .) | toYaml }}
    namespace: {{ toYaml (first .).Release.Namespace }}
{{- end }}

{{- /*
Of a list: the root context, the name of a policy, of which everything but its spec is here, and what follows if an object breaks it.
*/}}
{{- define "workergroups.policy" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
{{ include "workergroups.metadata" (slice . 0 2) }}
spec:
  policyName: {{ index . 1 }}
  validationActions: [{{ index . 2 }}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
{{ include "workergroups.metadata" (slice . 0 2) }}
{{- end }}

{{- /* Of a list: the root context, and the name of one of the release's images. */}}
{{- define "workergroups.releasedImage" -}}
{{- $root := index . 0 }}
{{- $root.Values.image.registry }}/{{ index . 1 }}:{{ $root.Values.image.tag | default (include "workergroups.version" $root.Chart.AppVersion) }}
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
