/**
 * Enforces Pod Security Standards by labels of namespaces. Upstream: plugin/pkg/admission/security/podsecurity with its default
 * configuration, without exemptions, and k8s.io/pod-security-admission/admission, v1.36.
 */
import { invalidObject, seconds, StatusError } from '@capstan/kube'
import type { Pod } from '../../kinds/schemas/types.ts'
import { forbidden, type Plugin, type PluginWrite } from '@capstan/apiserver/kinds'
import type { PodLike } from './check.ts'
import { existingPodWarnings } from './existing-pods.ts'
import { evaluateLabels } from './namespace-change.ts'
import { changesContainers, podTemplates } from './pod-templates.ts'
import { type Policy, policyOf, standardText } from './policy.ts'
import { detailsOf, findings } from './standards.ts'

export const podSecurity: Plugin = {
  name: 'PodSecurity',
  appliesTo: ({ storage }) => storage === 'namespaces' || storage === 'pods' || podTemplates.has(storage),
  validate(write) {
    if (write.operation === 'DELETE') return
    const { storage } = write.info
    if (storage === 'namespaces') admitNamespace(write)
    else if (storage === 'pods') admitPod(write)
    else admitTemplate(write)
  },
}

function admitNamespace({ subresource, info, object, old, store, clock, warn }: PluginWrite): void {
  if (subresource !== undefined) return
  const { name, labels } = object.metadata
  const result = evaluateLabels(labels, old && { labels: old.metadata.labels })
  switch (result.kind) {
    case 'accepted':
      return
    case 'invalid':
      throw invalidObject(info, name, result.errors)
    case 'tightened': {
      const deadline = clock.elapsed() + seconds(1)
      const pods = store.list('pods', name) as unknown as readonly Pod[]
      for (const text of existingPodWarnings(name, pods, result.enforce, () => clock.elapsed() > deadline)) warn(text)
    }
  }
}

/** Subresources that do not change the containers of a pod. */
const uncheckedSubresources = ['exec', 'attach', 'binding', 'eviction', 'log', 'portforward', 'proxy', 'status']

function admitPod(write: PluginWrite): void {
  const { subresource, namespace = '', object, old, warn } = write
  if (subresource !== undefined && uncheckedSubresources.includes(subresource)) return
  const policy = policyOfNamespace(write)
  if (!policy) {
    const text = `failed to lookup namespace ${JSON.stringify(namespace)}`
    throw new StatusError('InternalError', `Internal error occurred: ${text}`, { details: { causes: [{ message: text }] } })
  }
  if (isUnrestricted(policy)) return
  const pod = object as unknown as Pod
  if (old && !changesContainers(pod, old as unknown as Pod)) return
  const violations = findings(pod, policy.enforce)
  if (violations.length > 0) {
    throw forbidden(write, `violates PodSecurity "${standardText(policy.enforce)}": ${detailsOf(violations)}`)
  }
  warnOf(pod, policy, warn)
}

/** Warns about an object with a pod template whose pods would violate the `warn` standard of the namespace. Never rejects the object. */
function admitTemplate(write: PluginWrite): void {
  if (write.subresource !== undefined) return
  const policy = policyOfNamespace(write)
  if (!policy || isUnrestricted(policy)) return
  const template = podTemplates.get(write.info.storage)!(write.object)
  if (template) warnOf(template, policy, write.warn)
}

function policyOfNamespace({ store, namespace = '' }: PluginWrite): Policy | undefined {
  const storedNamespace = store.get({ resource: 'namespaces', namespace: '', name: namespace })
  return storedNamespace && policyOf(storedNamespace.metadata.labels).policy
}

const isUnrestricted = ({ enforce, warn }: Policy): boolean => enforce.level === 'privileged' && warn.level === 'privileged'

function warnOf(pod: PodLike, { warn: standard }: Policy, warn: PluginWrite['warn']): void {
  const violations = findings(pod, standard)
  if (violations.length > 0) warn(`would violate PodSecurity "${standardText(standard)}": ${detailsOf(violations)}`)
}
