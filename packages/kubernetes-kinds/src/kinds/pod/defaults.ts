/** Defaults of pods and pod templates. Upstream: defaults.go, zz_generated.defaults.go and conversion.go in pkg/apis/core/v1, v1.36. */
import { podResources } from './resources.ts'
import type { Container, Pod, PodSpec, PodTemplateSpec, Probe, Volume } from '../schemas/types.ts'

/** Sets the defaults that pods and pod templates share. */
function defaultPodSpec(spec: PodSpec): void {
  // serviceAccount is the deprecated name of serviceAccountName.
  const account = spec.serviceAccountName ?? spec.serviceAccount
  if (account !== undefined) spec.serviceAccountName = spec.serviceAccount = account
  for (const volume of spec.volumes ?? []) defaultVolume(volume)
  for (const container of containersOf(spec)) defaultContainer(container)
  spec.dnsPolicy ??= 'ClusterFirst'
  spec.restartPolicy ??= 'Always'
  spec.securityContext ??= {}
  spec.terminationGracePeriodSeconds ??= 30
  spec.schedulerName ??= 'default-scheduler'
}

export function defaultPodTemplate(template: PodTemplateSpec | undefined): void {
  if (template?.spec) defaultPodSpec(template.spec)
}

/** Sets all defaults of a pod, including those that pod templates do not have. */
export function defaultPod({ spec, status }: Pod): void {
  defaultPodSpec(spec)
  for (const { resources } of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    if (resources?.limits) resources.requests = { ...resources.limits, ...resources.requests }
  }
  defaultPodResources(spec)
  if (spec.terminationGracePeriodSeconds! < 0) spec.terminationGracePeriodSeconds = 1
  spec.enableServiceLinks ??= true
  status.phase ??= 'Pending'
  // podIP and the first of podIPs must be equal. Clients may know only podIP, so it takes precedence.
  if (status.podIP && status.podIPs?.[0]?.ip !== status.podIP) status.podIPs = [{ ip: status.podIP }]
  else if (status.podIPs?.length) status.podIP = status.podIPs[0]!.ip
  if (!spec.hostNetwork) return
  for (const { ports = [] } of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    for (const port of ports) port.hostPort ??= port.containerPort
  }
}

/**
 * Sets missing pod-level requests if the pod has pod-level limits. A missing request for CPU or memory becomes the total request of the
 * containers (`podResources`), or the pod-level limit if no container has such a request. A missing request for huge pages becomes the
 * pod-level limit.
 */
function defaultPodResources(spec: PodSpec): void {
  const { limits = {}, requests } = spec.resources ?? {}
  if (Object.keys(limits).length === 0) return
  const { resources: _, overhead: __, ...containers } = spec
  const defaultedRequests: { [name: string]: string | number } = { ...requests }
  const setMissing = (amounts: { readonly [name: string]: string | number }, names: RegExp) => {
    for (const [name, amount] of Object.entries(amounts)) if (names.test(name)) defaultedRequests[name] ??= amount
  }
  setMissing(podResources(containers).requests, /^(cpu|memory)$/)
  setMissing(limits, /^(cpu|memory|hugepages-.*)$/)
  spec.resources = { ...spec.resources, requests: defaultedRequests }
}

/** Returns all containers of a pod, of every type, in upstream's order. */
export const containersOf = ({ initContainers, containers, ephemeralContainers }: PodSpec): Container[] => [
  ...(initContainers ?? []),
  ...(containers ?? []),
  ...((ephemeralContainers ?? []) as unknown as Container[]),
]

function defaultContainer(container: Container): void {
  container.imagePullPolicy ??= isLatest(container.image ?? '') ? 'Always' : 'IfNotPresent'
  container.terminationMessagePath ??= '/dev/termination-log'
  container.terminationMessagePolicy ??= 'File'
  for (const { valueFrom } of container.env ?? []) if (valueFrom?.fieldRef) valueFrom.fieldRef.apiVersion ??= 'v1'
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) if (probe) defaultProbe(probe)
  for (const handler of [container.lifecycle?.postStart, container.lifecycle?.preStop]) if (handler) defaultHandler(handler)
}

/** Reports whether an image, unless empty, has the tag `latest`, or neither a tag nor a digest. Upstream: parsers.ParseImageName. */
function isLatest(image: string): boolean {
  if (image === '') return false
  const [name = '', digest] = image.split('@')
  const tag = /:([^/]*)$/.exec(name)?.[1]
  return tag === undefined ? digest === undefined : tag === 'latest'
}

function defaultProbe(probe: Probe): void {
  probe.timeoutSeconds ??= 1
  probe.periodSeconds ??= 10
  probe.successThreshold ??= 1
  probe.failureThreshold ??= 3
  defaultHandler(probe)
}

function defaultHandler({ httpGet }: Pick<Probe, 'httpGet'>): void {
  if (!httpGet) return
  httpGet.path ??= '/'
  httpGet.scheme ??= 'HTTP'
}

const FileMode = 0o644

function defaultVolume(volume: Volume): void {
  if (Object.keys(volume).every((member) => member === 'name')) volume.emptyDir = {}
  const { secret, configMap, downwardAPI, projected, hostPath, image, ephemeral } = volume
  for (const source of [secret, configMap, downwardAPI, projected]) if (source) source.defaultMode ??= FileMode
  if (hostPath) hostPath.type ??= ''
  if (image) image.pullPolicy ??= isLatest(image.reference ?? '') ? 'Always' : 'IfNotPresent'
  for (const { fieldRef } of downwardAPI?.items ?? []) if (fieldRef) fieldRef.apiVersion ??= 'v1'
  for (const source of projected?.sources ?? []) {
    if (source.serviceAccountToken) source.serviceAccountToken.expirationSeconds ??= 3600
    for (const { fieldRef } of source.downwardAPI?.items ?? []) if (fieldRef) fieldRef.apiVersion ??= 'v1'
  }
  const claim = ephemeral?.volumeClaimTemplate?.spec
  if (claim) claim.volumeMode ??= 'Filesystem'
}
