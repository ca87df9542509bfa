import { atOnce } from '@capstan/kube'
import { expect, test } from 'vitest'
import { convertedTypeProblem, jsonTypeProblem } from './go-types.ts'

const deployment = 'io.k8s.api.apps.v1.Deployment'
const withPodSpec = (spec: object) => ({ spec: { template: { spec } } })
const withContainer = (fields: object) => withPodSpec({ containers: [{ name: 'c', ...fields }] })
const notAQuantity = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

/** Each case has two errors recorded from a real server: for a request body, and for a strategic merge patch. */
test.each<[string, object, string, string]>([
  [
    'a string for a number',
    { spec: { replicas: 'many' } },
    'json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
    'unrecognized type: int32',
  ],
  [
    'a fraction for a whole number',
    { spec: { replicas: 1.5 } },
    'json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32',
    'cannot convert float64 to int32',
  ],
  [
    'a number for a boolean',
    { spec: { paused: 1 } },
    'json: cannot unmarshal number into Go struct field DeploymentSpec.spec.paused of type bool',
    'unrecognized type: bool',
  ],
  [
    'a number for a string, in a list',
    withContainer({ image: 5 }),
    'json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image of type string',
    'cannot convert int64 to string',
  ],
  [
    'a string for a struct',
    withPodSpec('x' as never),
    'json: cannot unmarshal string into Go struct field PodTemplateSpec.spec.template.spec of type v1.PodSpec',
    'cannot restore struct from: string',
  ],
  [
    'a list for a struct',
    { spec: { selector: [1] } },
    'json: cannot unmarshal array into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector',
    'cannot restore struct from: slice',
  ],
  [
    'a string for a list',
    withPodSpec({ containers: 'x' }),
    'json: cannot unmarshal string into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container',
    'cannot restore slice from string',
  ],
  [
    'a string for a map',
    withPodSpec({ nodeSelector: 'x' }),
    'json: cannot unmarshal string into Go struct field PodSpec.spec.template.spec.nodeSelector of type map[string]string',
    'cannot restore map from string',
  ],
  ['an invalid quantity', withContainer({ resources: { limits: { cpu: 'zz' } } }), notAQuantity, notAQuantity],
])('the decoders of JSON and of patches reject %s', (_, object, json, converted) => {
  expect(atOnce(jsonTypeProblem(deployment, object))).toBe(json)
  expect(atOnce(convertedTypeProblem(deployment, object))).toBe(converted)
})

test.each<[string, string, object, string | undefined]>([
  ['a valid object', deployment, withContainer({ image: 'x', ports: [{ containerPort: 80 }] }), undefined],
  ['null, which is ignored', deployment, { spec: { replicas: null, template: null } }, undefined],
  ['an unknown field', deployment, { spec: { replica: 'x' } }, undefined],
  [
    'the first of two invalid values',
    deployment,
    { spec: { paused: 'yes', replicas: 'x' } },
    'json: cannot unmarshal string into Go struct field DeploymentSpec.spec.paused of type bool',
  ],
  [
    'a fraction for int-or-string',
    'io.k8s.api.core.v1.Service',
    { spec: { ports: [{ port: 80, targetPort: 1.5 }] } },
    'json: cannot unmarshal number 1.5 into Go struct field ServicePort.spec.ports.targetPort of type int32',
  ],
  ['truncated base64', 'io.k8s.api.core.v1.Secret', { data: { a: 'YWJjZ' } }, 'illegal base64 data at input byte 4'],
  ['invalid base64', 'io.k8s.api.core.v1.Secret', { data: { a: 'YW*j' } }, 'illegal base64 data at input byte 2'],
  [
    'an invalid time',
    'io.k8s.api.core.v1.Event',
    { firstTimestamp: 'x' },
    'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
  ],
])("`jsonTypeProblem` returns the error of Go's JSON decoder, if there is one, for %s", (_, component, object, problem) => {
  expect(atOnce(jsonTypeProblem(component, object))).toBe(problem)
})
