{{- define "steadfast.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "steadfast.selector" -}}
app.kubernetes.io/name: steadfast
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "steadfast.labels" -}}
{{ include "steadfast.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "steadfast.image" -}}
{{ printf "%s:%s" .Values.image.repository .Values.image.tag }}
{{- end -}}

{{- define "steadfast.keys.broker" -}}
{{ .Values.keys.broker | default (printf "%s-broker-keys" (include "steadfast.name" .)) }}
{{- end -}}
{{- define "steadfast.keys.services" -}}
{{ .Values.keys.services | default (printf "%s-service-keys" (include "steadfast.name" .)) }}
{{- end -}}
{{- define "steadfast.keys.workers" -}}
{{ .Values.keys.workers | default (printf "%s-worker-keys" (include "steadfast.name" .)) }}
{{- end -}}

{{- define "steadfast.database" -}}
{{ .Values.database.existingSecret | default (printf "%s-database" (include "steadfast.name" .)) }}
{{- end -}}
{{- define "steadfast.store" -}}
{{ .Values.objectStore.existingSecret | default (printf "%s-store" (include "steadfast.name" .)) }}
{{- end -}}

{{- define "steadfast.storeUrl" -}}
{{- if .Values.objectStore.bundled.enabled -}}
http://{{ include "steadfast.name" . }}-minio:9000
{{- else -}}
{{ .Values.objectStore.endpoint }}
{{- end -}}
{{- end -}}

{{- /* One address for each broker: clients go by what they are told, and one of three may be gone. */ -}}
{{- define "steadfast.natsUrl" -}}
{{- $name := printf "%s-nats" (include "steadfast.name" .) -}}
{{- $urls := list -}}
{{- range $i := until (int .Values.broker.count) -}}
{{- $urls = append $urls (printf "nats://%s-%d.%s:4222" $name $i $name) -}}
{{- end -}}
{{- join "," (concat $urls .Values.broker.externalUrls) -}}
{{- end -}}

{{- define "steadfast.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "steadfast.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* Where pods go: context and component. */ -}}
{{- define "steadfast.placing" -}}
{{- $root := index . 0 }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets: {{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if $root.Values.affinity }}
affinity: {{- toYaml $root.Values.affinity | nindent 2 }}
{{- else }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "steadfast.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ index . 1 }}
{{- end }}
{{- end -}}
