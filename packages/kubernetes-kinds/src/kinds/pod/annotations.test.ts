import { describe, expect, test } from 'vitest'
import type { Pod, PodSpec, PodTemplateSpec } from '../schemas/types.ts'
import { adoptAppArmorAnnotations, annotationChanges, annotationErrors, profileMismatches } from './annotations.ts'
import { templateWarnings } from './warnings.ts'

const seccomp = 'container.seccomp.security.alpha.kubernetes.io/'
const seccompOfPod = 'seccomp.security.alpha.kubernetes.io/pod'
const appArmor = 'container.apparmor.security.beta.kubernetes.io/'
const mirror = 'kubernetes.io/config.mirror'

const pod = (annotations: { [name: string]: string }, spec: object = {}) =>
  ({ metadata: { annotations }, spec: { containers: [{ name: 'a' }], ...spec } as PodSpec }) as Pod
const withProfiles = (context: object, ...ofContainers: object[]) => ({
  securityContext: context,
  containers: ofContainers.map((securityContext, index) => ({ name: 'ab'[index], securityContext })),
})
const texts = (errors: readonly { field: string; text: string }[]) => errors.map(({ field, text }) => `${field}: ${text}`)

describe('annotations of pods', () => {
  test.each<[string, string, string[]]>([
    [`${appArmor}a`, 'localhost/x', []],
    [`${appArmor}a`, '', []],
    [`${appArmor}a`, 'x"', [`metadata.annotations[${appArmor}a]: Invalid value: "x\\"": invalid AppArmor profile name: "x\\""`]],
    [`${appArmor}b`, 'unconfined', [`metadata.annotations[${appArmor}b]: Invalid value: "b": container not found`]],
    [seccompOfPod, 'docker/default', []],
    [seccompOfPod, 'x', [`metadata.annotations.${seccompOfPod}: Invalid value: "x": must be a valid seccomp profile`]],
    [`${seccomp}z`, 'localhost/../x', [`metadata.annotations.${seccomp}z: Invalid value: "../x": must not contain '..'`]],
    [
      mirror,
      'x',
      [`metadata.annotations[${mirror}]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set`],
    ],
    ['controller.kubernetes.io/pod-deletion-cost', '-5', []],
  ])('the annotation %s with the value %j has the errors %j', (name, value, expected) => {
    expect(texts(annotationErrors('metadata.annotations', pod({ [name]: value })))).toEqual(expected)
  })

  test.each<[object, object, string[]]>([
    [{ [`${appArmor}a`]: 'unconfined' }, {}, ['add AppArmor annotations']],
    [{}, { [`${appArmor}a`]: 'unconfined' }, ['remove or update AppArmor annotations']],
    [{ [`${appArmor}a`]: '' }, { [`${appArmor}a`]: 'unconfined' }, ['remove or update AppArmor annotations']],
    [{ other: 'x', [`${appArmor}a`]: '' }, { [`${appArmor}a`]: '' }, []],
  ])('an update to the annotations %j from %j makes the forbidden changes %j', (now, old, expected) => {
    const errors = annotationChanges(pod(now as {}), pod(old as {}))
    expect(errors.map(({ text }) => text)).toEqual(expected.map((change) => `Forbidden: may not ${change}`))
  })
})

describe('profiles in annotations and in fields', () => {
  const mustMatch = 'must match'
  test.each<[object, object, string[]]>([
    [{ [seccompOfPod]: 'docker/default' }, withProfiles({ seccompProfile: { type: 'RuntimeDefault' } }, {}), []],
    [
      { [seccompOfPod]: 'unconfined' },
      withProfiles({ seccompProfile: { type: 'RuntimeDefault' } }, {}),
      [`spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field ${mustMatch}`],
    ],
    [
      { [`${seccomp}b`]: 'localhost/x' },
      withProfiles({}, {}, { seccompProfile: { type: 'Localhost', localhostProfile: 'other' } }),
      [
        `spec.containers[1].securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation and field ${mustMatch}`,
      ],
    ],
    [
      { [`${appArmor}a`]: 'localhost/x' },
      withProfiles({}, { appArmorProfile: { type: 'Localhost', localhostProfile: 'x' } }),
      [],
    ],
    [
      { [`${appArmor}a`]: 'docker/default' },
      withProfiles({ appArmorProfile: { type: 'RuntimeDefault' } }, {}),
      [`spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field ${mustMatch}`],
    ],
    [
      { [`${appArmor}a`]: 'unconfined' },
      { ...withProfiles({ appArmorProfile: { type: 'RuntimeDefault' } }, {}), os: { name: 'windows' } },
      [],
    ],
  ])('the annotations %j and the spec %j have the errors %j', (annotations, spec, expected) => {
    expect(texts(profileMismatches('spec', pod(annotations as {}, spec)))).toEqual(expected)
  })
})

describe('AppArmor profiles in annotations', () => {
  const outdated = (field: string) => [`${field}[${appArmor}a]: deprecated since v1.30; use the "appArmorProfile" field instead`]

  test.each<[string, object, object | undefined, number]>([
    ['unconfined', {}, { type: 'Unconfined' }, 1],
    ['runtime/default', {}, { type: 'RuntimeDefault' }, 1],
    ['localhost/x', {}, { type: 'Localhost', localhostProfile: 'x' }, 1],
    ['localhost/', {}, undefined, 1],
    ['runtime/default', withProfiles({ appArmorProfile: { type: 'RuntimeDefault' } }, {}), undefined, 0],
    ['unconfined', withProfiles({}, { appArmorProfile: { type: 'RuntimeDefault' } }), { type: 'RuntimeDefault' }, 0],
    ['unconfined', { os: { name: 'windows' } }, undefined, 0],
  ])(
    'the annotation %s and the spec %j give the container the profile %j, and the number of warnings is %d',
    (annotation, spec, profile, warningCount) => {
      const annotatedPod = pod({ [`${appArmor}a`]: annotation }, spec)
      expect(adoptAppArmorAnnotations(annotatedPod)).toEqual(outdated('metadata.annotations').slice(0, warningCount))
      expect(annotatedPod.spec.containers![0]!.securityContext?.appArmorProfile).toEqual(profile)
    },
  )

  test.each<[object, number]>([
    [{}, 1],
    [withProfiles({ appArmorProfile: { type: 'Unconfined' } }, {}), 0],
    [withProfiles({ appArmorProfile: { type: 'RuntimeDefault' } }, {}), 1],
    [withProfiles({}, { appArmorProfile: { type: 'Unconfined' } }), 0],
  ])('for the annotation unconfined of a template with the spec %j, the number of warnings is %d', (spec, warningCount) => {
    const template = pod({ [`${appArmor}a`]: 'unconfined' }, spec) as unknown as PodTemplateSpec
    expect(templateWarnings('spec.template', template, { metadata: {} }, undefined)).toEqual(
      outdated('spec.template.metadata.annotations').slice(0, warningCount),
    )
  })
})
