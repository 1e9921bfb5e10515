{{- define "retryd.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Short enough for the longest suffix of an object, "-headless", within the 63 characters of a name. */}}
{{- define "retryd.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 54 | trimSuffix "-" }}
{{- else if contains (include "retryd.name" .) .Release.Name }}
{{- .Release.Name | trunc 54 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "retryd.name" .) | trunc 54 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "retryd.selectorLabels" -}}
app.kubernetes.io/name: {{ include "retryd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "retryd.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "retryd.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "retryd.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "retryd.policyConfigMap" -}}
{{- default (printf "%s-policy" (include "retryd.fullname" .)) .Values.policy.existingConfigMap }}
{{- end }}

{{/*
In an outage of the store each pod goes on with its part of the budgets, and pods that start meanwhile see nobody. So it is
the most that there may be: with a smaller number all parts together would be more than the whole.
*/}}
{{- define "retryd.replicas" -}}
{{- if .Values.store.replicas }}
{{- .Values.store.replicas }}
{{- else if .Values.autoscaling.enabled }}
{{- .Values.autoscaling.maxReplicas }}
{{- else }}
{{- .Values.replicaCount }}
{{- end }}
{{- end }}

{{- define "retryd.env" -}}
- name: RETRYD_LISTEN
  value: {{ printf "%s:50051" .Values.listenHost | quote }}
{{- if .Values.tls.secretName }}
- name: RETRYD_TLS_CERT_FILE
  value: /etc/retryd/tls/tls.crt
- name: RETRYD_TLS_KEY_FILE
  value: /etc/retryd/tls/tls.key
{{- with .Values.tls.clientCAKey }}
- name: RETRYD_TLS_CLIENT_CA_FILE
  value: /etc/retryd/tls/{{ . }}
{{- end }}
{{- else }}
# Plaintext: beyond loopback, retryd refuses that unless told that the network may be trusted. The NetworkPolicy, or a mesh, is
# what keeps strangers away.
- name: RETRYD_INSECURE
  value: "true"
{{- end }}
- name: RETRYD_PROBE_LISTEN
  value: {{ printf "%s:50052" .Values.listenHost | quote }}
- name: RETRYD_ADMIN_LISTEN
  value: {{ printf "%s:9090" .Values.listenHost | quote }}
- name: RETRYD_POLICY
  value: /etc/retryd/policy/policy.yaml
- name: RETRYD_DRAIN_DELAY
  value: {{ printf "%ds" (int .Values.drain.delaySeconds) }}
- name: RETRYD_DRAIN_TIMEOUT
  value: {{ printf "%ds" (int .Values.drain.timeoutSeconds) }}
- name: RETRYD_CONNECTION_AGE
  value: {{ .Values.connectionAge }}
- name: RETRYD_MAX_BALANCES
  value: {{ int .Values.maxBalances | quote }}
- name: RETRYD_LOG
  value: {{ .Values.log | quote }}
{{- if .Values.store.url }}
- name: RETRYD_STORE
  value: {{ .Values.store.url | quote }}
- name: RETRYD_REPLICAS
  value: {{ include "retryd.replicas" . | quote }}
- name: RETRYD_STORE_PREFIX
  value: {{ .Values.store.prefix | quote }}
{{- with .Values.store.user }}
- name: RETRYD_STORE_USER
  value: {{ . | quote }}
{{- end }}
{{- if .Values.store.secretName }}
- name: RETRYD_STORE_PASSWORD_FILE
  value: /etc/retryd/store/{{ .Values.store.passwordKey }}
{{- with .Values.store.caKey }}
- name: RETRYD_STORE_CA_FILE
  value: /etc/retryd/store/{{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What a schema cannot say: values that do not go together. */}}
{{- define "retryd.checks" -}}
{{- with .Values }}
{{- if and .autoscaling.enabled (gt (int .autoscaling.minReplicas) (int .autoscaling.maxReplicas)) }}
{{- fail "autoscaling.minReplicas is more than autoscaling.maxReplicas" }}
{{- end }}
{{- if gt (int .drain.delaySeconds) (int .drain.timeoutSeconds) }}
{{- fail "drain.delaySeconds is more than drain.timeoutSeconds, which it is a part of" }}
{{- end }}
{{- if and .tls.clientCAKey (not .tls.secretName) }}
{{- fail "tls.clientCAKey is a key of the Secret tls.secretName, which is not set" }}
{{- end }}
{{- if and .store.caKey (not .store.secretName) }}
{{- fail "store.caKey is a key of the Secret store.secretName, which is not set" }}
{{- end }}
{{- end }}
{{- end }}
