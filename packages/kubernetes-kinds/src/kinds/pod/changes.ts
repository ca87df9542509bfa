/** Validates creates and updates of pods, and bindings. Upstream: ValidatePodCreate, ValidatePodUpdate and related functions, v1.36. */
import {
  appendAll,
  draft,
  equal,
  type FieldError,
  forbidden,
  invalid,
  valueKey,
  qualifiedNameProblems,
  required,
  type Work,
  writeJSON,
} from '@capstan/kube'
import { inRange, ipAddress, problems, subdomain, unchanged } from '../checks.ts'
import type { Container, ContainerStatus, Pod, PodSpec } from '../schemas/types.ts'
import { annotationChanges, annotationErrors, Mirror, profileMismatches } from './annotations.ts'
import { imageWhitespaceErrors } from './containers.ts'
import { qosClass } from './resources.ts'
import { validatePodSpec, validateTolerations } from './spec.ts'

/** Validates annotations and spec. Upstream: validatePodMetadataAndSpec, without the metadata that is validated for all kinds. */
function* validatePod({ metadata, spec }: Pod): Work<FieldError[]> {
  const errors = annotationErrors('metadata.annotations', { metadata, spec })
  appendAll(errors, yield* validatePodSpec('spec', spec, metadata.name ?? ''))
  if (!spec.serviceAccountName) {
    for (const [index, { projected }] of (spec.volumes ?? []).entries()) {
      for (const [sourceIndex, { serviceAccountToken }] of (projected?.sources ?? []).entries()) {
        if (!serviceAccountToken) continue
        const valuePath = `spec.volumes[${index}].projected.sources[${sourceIndex}].serviceAccountToken`
        errors.push(forbidden(valuePath, 'must not be specified when serviceAccountName is not set'))
      }
    }
  }
  for (const member of ['containers', 'initContainers'] as const) {
    for (const [index, { image }] of (spec[member] ?? []).entries()) {
      appendAll(errors, imageWhitespaceErrors(`spec.${member}[${index}]`, image))
    }
  }
  return errors
}

export function* validatePodCreate(pod: Pod): Work<FieldError[]> {
  const errors = yield* validatePod(pod)
  const { ephemeralContainers = [], nodeName, schedulingGates = [] } = pod.spec
  if (ephemeralContainers.length > 0) errors.push(forbidden('spec.ephemeralContainers', 'cannot be set on create'))
  if (nodeName && schedulingGates.length > 0) {
    errors.push(forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'))
  }
  return [...errors, ...profileMismatches('spec', pod)]
}

const Updatable = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
]

export function* validatePodUpdate(pod: Pod, old: Pod): Work<FieldError[]> {
  const errors = [...(yield* validatePod(pod)), ...annotationChanges(pod, old)]
  for (const member of ['containers', 'initContainers'] as const) {
    const [now, before] = [pod.spec[member] ?? [], old.spec[member] ?? []]
    if (now.length !== before.length) {
      return [...errors, forbidden(`spec.${member}`, 'pod updates may not add or remove containers')]
    }
    for (const [index, { image }] of now.entries()) {
      if (!image) errors.push(required(`spec.${member}[${index}].image`))
      appendAll(errors, imageWhitespaceErrors(`spec.${member}[${index}]`, image))
    }
  }
  const [deadline, earlier] = [pod.spec.activeDeadlineSeconds, old.spec.activeDeadlineSeconds]
  if (deadline !== undefined) {
    const rangeErrors = inRange('spec.activeDeadlineSeconds', deadline, 0, 2147483647)
    if (rangeErrors.length > 0) return [...errors, ...rangeErrors]
    if (earlier !== undefined && earlier < deadline) {
      return [...errors, invalid('spec.activeDeadlineSeconds', deadline, 'must be less than or equal to previous value')]
    }
  } else if (earlier !== undefined) {
    errors.push(invalid('spec.activeDeadlineSeconds', null, 'must not update from a positive integer to nil value'))
  }
  appendAll(errors, tolerationChanges(pod.spec, old.spec), gateChanges(pod.spec, old.spec))
  const allowed = withAllowedChanges(pod.spec, old.spec)
  if (!equal(pod.spec, allowed)) appendAll(errors, gatedChanges(pod.spec, allowed))
  if (!equal(pod.spec, allowed)) {
    const text = `pod updates may not change fields other than ${Updatable.join(',')}\n${difference(old.spec, pod.spec)}`
    errors.push(forbidden('spec', text))
  }
  return errors
}

/** Returns the old spec with the new values of the fields that may change, except the nodeSelector (`gatedChanges`). Does not validate them. */
function withAllowedChanges(spec: PodSpec, old: PodSpec): PodSpec {
  const allowed = draft(old)
  for (const member of ['containers', 'initContainers'] as const) {
    for (const [index, container] of (allowed[member] ?? []).entries()) setImage(container, spec[member]![index]!.image)
  }
  for (const member of ['activeDeadlineSeconds', 'schedulingGates', 'tolerations'] as const) {
    if (spec[member] === undefined) delete allowed[member]
    else Object.assign(allowed, { [member]: spec[member] })
  }
  if ((old.terminationGracePeriodSeconds ?? 0) < 0 && spec.terminationGracePeriodSeconds === 1) {
    allowed.terminationGracePeriodSeconds = 1
  }
  return allowed
}

function setImage(container: Container, image: string | undefined): void {
  if (image === undefined) delete container.image
  else container.image = image
}

/**
 * If the updated pod has scheduling gates, validates changes of the nodeSelector (keys may only be added), and sets the new nodeSelector in
 * `allowed`.
 */
function gatedChanges(spec: PodSpec, allowed: PodSpec): FieldError[] {
  if (!allowed.schedulingGates?.length && !spec.schedulingGates?.length) return []
  const [now = {}, before = {}] = [spec.nodeSelector, allowed.nodeSelector]
  const errors: FieldError[] = []
  for (const [key, value] of Object.entries(before)) {
    if (now[key] !== value)
      errors.push(invalid('spec.nodeSelector', now, 'only additions are allowed (no mutations or deletions)'))
  }
  if (spec.nodeSelector) allowed.nodeSelector = spec.nodeSelector
  else delete allowed.nodeSelector
  return errors
}

function tolerationChanges(spec: PodSpec, old: PodSpec): FieldError[] {
  const [now, before] = [spec.tolerations ?? [], old.tolerations ?? []]
  const withoutSeconds = (toleration: object) => ({ ...toleration, tolerationSeconds: undefined })
  const newTolerations = new Set(now.map((toleration) => valueKey(withoutSeconds(toleration))))
  if (!before.every((toleration) => newTolerations.has(valueKey(withoutSeconds(toleration))))) {
    return [forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')]
  }
  return validateTolerations('spec.tolerations', now)
}

function gateChanges(spec: PodSpec, old: PodSpec): FieldError[] {
  const oldGates = new Set((old.schedulingGates ?? []).map(({ name }) => name))
  return (spec.schedulingGates ?? []).flatMap(({ name }, index) =>
    oldGates.has(name)
      ? []
      : [forbidden(`spec.schedulingGates[${index}].name`, `only deletion is allowed, but found new scheduling gate '${name}'`)],
  )
}

/** Formats the difference of two specs: for each member that differs, its old and its new value as JSON, on lines with `-` and `+`. */
function difference(old: PodSpec, now: PodSpec): string {
  const lines: string[] = []
  for (const member of new Set([...Object.keys(old), ...Object.keys(now)])) {
    const [before, after] = [old[member as keyof PodSpec], now[member as keyof PodSpec]]
    if (equal(before, after)) continue
    if (before !== undefined) lines.push(`-\t${member}: ${writeJSON(before)}`)
    if (after !== undefined) lines.push(`+\t${member}: ${writeJSON(after)}`)
  }
  return lines.join('\n')
}

export function validatePodStatus(pod: Pod, old: Pod): FieldError[] {
  const { status } = pod
  const errors = annotationChanges(pod, old)
  for (const [index, { type }] of (status.conditions ?? []).entries()) {
    appendAll(errors, problems(`status.conditions[${index}].Type`, type, qualifiedNameProblems(type)))
  }
  const nominated = status.nominatedNodeName
  if (nominated && nominated !== old.status.nominatedNodeName) {
    appendAll(errors, subdomain('status.nominatedNodeName', nominated))
    if (old.spec.nodeName) {
      errors.push(forbidden('status.nominatedNodeName', 'may not be set on pods that are already bound to a node'))
    }
  }
  appendAll(errors, unchanged('status.qosClass', status.qosClass, old.status.qosClass))
  for (const member of ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'] as const) {
    appendAll(errors, restarts(`status.${member}`, status[member] ?? [], old.status[member] ?? [], old.spec, member))
  }
  for (const [index, { ip }] of (status.podIPs ?? []).entries()) appendAll(errors, ipAddress(`status.podIPs[${index}]`, ip))
  for (const [index, { ip }] of (status.hostIPs ?? []).entries()) {
    if (index === 0 && ip !== status.hostIP) errors.push(invalid('status.hostIPs[0].ip', ip, 'must be equal to `hostIP`'))
    appendAll(errors, ipAddress(`status.hostIPs[${index}]`, ip))
  }
  return errors
}

/** Returns errors for terminated containers whose new state is not terminated, unless the restart policy allows that. */
function restarts(
  field: string,
  now: readonly ContainerStatus[],
  old: readonly ContainerStatus[],
  { restartPolicy, containers = [], initContainers = [] }: PodSpec,
  member: string,
): FieldError[] {
  const byName = new Map([...containers, ...initContainers].toReversed().map((container) => [container.name, container]))
  const notTerminated = new Set(now.filter(({ state }) => !state?.terminated).map(({ name }) => name))
  return old.flatMap(({ name, state }, index) => {
    if (!state?.terminated) return []
    const container = byName.get(name)
    const policy = member === 'ephemeralContainerStatuses' ? 'Never' : (container?.restartPolicy ?? restartPolicy)
    if (policy === 'Always' || (policy === 'OnFailure' && state.terminated.exitCode !== 0)) return []
    return notTerminated.has(name)
      ? [forbidden(`${field}[${index}].state`, 'may not be transitioned to non-terminated state')]
      : []
  })
}

/** Upstream: ValidatePodEphemeralContainersUpdate. */
export function* validateEphemeralContainersUpdate(pod: Pod, old: Pod): Work<FieldError[]> {
  if (old.metadata.annotations?.[Mirror] !== undefined) return [forbidden('', 'static pods do not support ephemeral containers')]
  const errors = [...(yield* validatePod(pod)), ...annotationChanges(pod, old)]
  const byName = new Map((pod.spec.ephemeralContainers ?? []).toReversed().map((container) => [container.name, container]))
  for (const before of old.spec.ephemeralContainers ?? []) {
    const now = byName.get(before.name)
    const name = JSON.stringify(before.name)
    if (!now) {
      errors.push(forbidden('spec.ephemeralContainers', `existing ephemeral containers ${name} may not be removed\n`))
    } else if (!equal(now, before)) {
      errors.push(forbidden('spec.ephemeralContainers', `existing ephemeral containers ${name} may not be changed\n`))
    }
  }
  return errors
}

/** Upstream: ValidatePodResize. */
export function* validatePodResize(pod: Pod, old: Pod): Work<FieldError[]> {
  if (old.metadata.annotations?.[Mirror] !== undefined) return [forbidden('', 'static pods cannot be resized')]
  const errors = yield* validatePod(pod)
  if (qosClass(pod) !== (old.status.qosClass ?? qosClass(old))) {
    errors.push(invalid('spec', pod.status.qosClass ?? '', 'Pod QOS Class may not change as a result of resizing'))
  }
  if (old.status.phase === 'Failed' || old.status.phase === 'Succeeded') {
    errors.push(forbidden('spec', 'Pod running on node without support for resize'))
  }
  const specWithOldResources = draft(pod.spec)
  for (const member of ['containers', 'initContainers'] as const) {
    for (const [index, container] of (specWithOldResources[member] ?? []).entries()) {
      const before = old.spec[member]?.[index]
      if (!before) continue
      container.resources = before.resources
      if (before.resizePolicy) container.resizePolicy = before.resizePolicy
      else delete container.resizePolicy
    }
  }
  if (!equal(specWithOldResources, old.spec))
    errors.push(forbidden('spec', `only cpu and memory resources are mutable\n${difference(old.spec, specWithOldResources)}`))
  return errors
}

/** Validates the target of a Binding. Upstream: ValidatePodBinding. */
export function bindingErrors({ kind, name }: { kind?: string; name?: string }): FieldError[] {
  const errors: FieldError[] = []
  if (kind && kind !== 'Node') {
    errors.push({
      type: 'FieldValueNotSupported',
      field: 'target.kind',
      text: `Unsupported value: ${JSON.stringify(kind)}: supported values: "Node", "<empty>"`,
    })
  }
  if (!name) errors.push(required('target.name'))
  return errors
}
