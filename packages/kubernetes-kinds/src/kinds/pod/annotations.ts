/**
 * Validates annotations of pods, mainly annotations that fields have replaced, and sets AppArmor fields from annotations. Upstream:
 * ValidatePodSpecificAnnotations, v1.36.
 */
import { appendAll, equal, type FieldError, forbidden, invalid, quotedGo } from '@capstan/kube'
import { descendingPath } from '../checks.ts'
import type { AppArmorProfile, Container, Pod, PodTemplateSpec } from '../schemas/types.ts'
import { profile } from './containers.ts'
import { containersOf } from './defaults.ts'
import { placedContainers } from './placed-containers.ts'

/** Annotation of mirror pods: the objects that the kubelet creates for its static pods. */
export const Mirror = 'kubernetes.io/config.mirror'
const DeletionCost = 'controller.kubernetes.io/pod-deletion-cost'
const SeccompOfPod = 'seccomp.security.alpha.kubernetes.io/pod'
const Seccomp = 'container.seccomp.security.alpha.kubernetes.io/'
const AppArmor = 'container.apparmor.security.beta.kubernetes.io/'

type Annotated = Pick<PodTemplateSpec, 'metadata' | 'spec'>

/** Validates annotations. @param field path of the annotations, such as `metadata.annotations` */
export function annotationErrors(field: string, { metadata: { annotations = {} }, spec }: Annotated): FieldError[] {
  const errors: FieldError[] = []
  if (annotations[Mirror] !== undefined && !spec.nodeName) {
    const text = 'must set spec.nodeName if mirror pod annotation is set'
    errors.push(invalid(`${field}[${Mirror}]`, annotations[Mirror], text))
  }
  const cost = annotations[DeletionCost]
  if (cost !== undefined && !(/^-?(0|[1-9]\d{0,9})$/.test(cost) && Math.abs(Number(cost)) <= 2 ** 31 - 1)) {
    errors.push(invalid(`${field}[${DeletionCost}]`, cost, 'must be a 32bit integer'))
  }
  for (const [name, value] of Object.entries(annotations)) {
    if (name === SeccompOfPod || name.startsWith(Seccomp)) appendAll(errors, seccompErrors(`${field}.${name}`, value))
  }
  const containers = new Set(containersOf(spec).map(({ name }) => name))
  for (const [name, value] of Object.entries(annotations)) {
    if (!name.startsWith(AppArmor)) continue
    const container = name.slice(AppArmor.length)
    if (!containers.has(container)) {
      errors.push(invalid(`${field}[${name}]`, container, 'container not found'))
    }
    if (!['', 'runtime/default', 'unconfined'].includes(value) && !value.startsWith('localhost/')) {
      errors.push(invalid(`${field}[${name}]`, value, `invalid AppArmor profile name: ${quotedGo(value)}`))
    }
  }
  return errors
}

function seccompErrors(field: string, value: string): FieldError[] {
  if (['runtime/default', 'docker/default', 'unconfined'].includes(value)) return []
  if (value.startsWith('localhost/')) return descendingPath(field, value.slice('localhost/'.length))
  return [invalid(field, value, 'must be a valid seccomp profile')]
}

/** Validates changes of annotations of an existing pod. As upstream, also returns the `annotationErrors` of the new annotations. */
export function annotationChanges(pod: Pod, { metadata: { annotations: old = {} } }: Pod): FieldError[] {
  const field = 'metadata.annotations'
  const { annotations = {} } = pod.metadata
  const errors: FieldError[] = []
  for (const name of new Set([...Object.keys(old), ...Object.keys(annotations)])) {
    if (annotations[name] === old[name]) continue
    const verb = old[name] === undefined ? 'add' : 'remove or update'
    if (name.startsWith(AppArmor)) errors.push(forbidden(`${field}[${name}]`, `may not ${verb} AppArmor annotations`))
    if (name === Mirror) errors.push(forbidden(`${field}[${name}]`, `may not ${verb} mirror pod annotation`))
  }
  return [...errors, ...annotationErrors(field, pod)]
}

/** Returns errors for seccomp and AppArmor profiles that differ between annotation and field. @param field path of the spec */
export function profileMismatches(field: string, { metadata: { annotations = {} }, spec }: Annotated): FieldError[] {
  if (!Object.keys(annotations).some((name) => name === SeccompOfPod || name.startsWith(Seccomp) || name.startsWith(AppArmor)))
    return []
  const errors: FieldError[] = []
  const compare = (
    profileKind: 'seccomp' | 'apparmor',
    profilePath: string,
    annotation: string | undefined,
    fieldProfile: Profile | undefined,
  ): void => {
    if (annotation === undefined || !fieldProfile || annotationSpellings[profileKind][fieldProfile.type]?.includes(annotation))
      return
    const isLocal = fieldProfile.type === 'Localhost' && annotation.startsWith('localhost/')
    if (!isLocal) errors.push(forbidden(`${profilePath}.type`, `${profileKind} type in annotation and field must match`))
    else if (annotation !== `localhost/${fieldProfile.localhostProfile}`) {
      errors.push(forbidden(`${profilePath}.localhostProfile`, `${profileKind} profile in annotation and field must match`))
    }
  }
  const podContext = spec.securityContext
  const placed = placedContainers(field, spec)
  compare('seccomp', `${field}.securityContext.seccompProfile`, annotations[SeccompOfPod], podContext?.seccompProfile)
  for (const [containerPath, { name, securityContext }] of placed) {
    compare(
      'seccomp',
      `${containerPath}.securityContext.seccompProfile`,
      annotations[`${Seccomp}${name}`],
      securityContext?.seccompProfile,
    )
  }
  if (spec.os?.name === 'windows') return errors
  for (const [containerPath, { name, securityContext }] of placed) {
    const fieldProfile = securityContext?.appArmorProfile ?? podContext?.appArmorProfile
    compare('apparmor', `${containerPath}.securityContext.appArmorProfile`, annotations[`${AppArmor}${name}`], fieldProfile)
  }
  return errors
}

type Profile = { readonly type: string; readonly localhostProfile?: string }

/** Values of annotations for each type of profile, except Localhost. */
const annotationSpellings: { readonly [profileKind in 'seccomp' | 'apparmor']: { readonly [type: string]: readonly string[] } } =
  {
    seccomp: { Unconfined: ['unconfined'], RuntimeDefault: ['runtime/default', 'docker/default'] },
    apparmor: { Unconfined: ['unconfined'], RuntimeDefault: ['runtime/default'] },
  }

const deprecationWarning = (field: string, name: string): string =>
  `${field}[${AppArmor}${name}]: deprecated since v1.30; use the "appArmorProfile" field instead`

/**
 * Copies the AppArmor annotations of a new pod to the field appArmorProfile of its containers. Ignores Windows pods, annotations without
 * a container, annotations of containers that have this field, and annotations that equal the profile of the pod. Upstream:
 * applyAppArmorVersionSkew.
 * @returns a warning for each other annotation, also for an empty or invalid one, which is not copied
 */
export function adoptAppArmorAnnotations({ metadata: { annotations }, spec }: Pod): string[] {
  if (!annotations || spec.os?.name === 'windows') return []
  return containersOf(spec).flatMap((container) => {
    const annotation = annotations[`${AppArmor}${container.name}`]
    if (annotation === undefined || container.securityContext?.appArmorProfile) return []
    const fieldProfile = appArmorProfile(annotation)
    if (fieldProfile) {
      if (equal(fieldProfile, spec.securityContext?.appArmorProfile)) return []
      container.securityContext = { ...container.securityContext, appArmorProfile: fieldProfile }
    }
    return [deprecationWarning('metadata.annotations', container.name)]
  })
}

/**
 * Returns a warning for the AppArmor annotation of a container in a pod template, unless the container has the field appArmorProfile or the
 * annotation equals the profile of the pod. Annotations of templates are not copied to fields.
 * @param field path of the annotations
 */
export function appArmorWarning(field: string, { metadata, spec }: Annotated, { name, securityContext }: Container): string[] {
  const annotation = metadata.annotations?.[`${AppArmor}${name}`]
  if (annotation === undefined || securityContext?.appArmorProfile) return []
  const podProfile = spec.securityContext?.appArmorProfile
  return podProfile && equal(podProfile, appArmorProfile(annotation)) ? [] : [deprecationWarning(field, name)]
}

/** Returns the profile that an annotation selects; `undefined` for an empty or invalid annotation. */
function appArmorProfile(annotation: string): AppArmorProfile | undefined {
  if (annotation === 'unconfined') return { type: 'Unconfined' }
  if (annotation === 'runtime/default') return { type: 'RuntimeDefault' }
  if (!annotation.startsWith('localhost/')) return undefined
  const fieldProfile = { type: 'Localhost', localhostProfile: annotation.slice('localhost/'.length) }
  return profile('', fieldProfile, 'AppArmor', 'appArmorProfile').length === 0 ? fieldProfile : undefined
}
