import { describe, expect, test } from 'vitest'
import { evaluateLabels } from './namespace-change.ts'
import { policyOf, standardText } from './policy.ts'

const prefix = 'pod-security.kubernetes.io/'

/** Parses a text such as `enforce=baseline enforce-version=v1.3` to labels. */
const labelsOf = (text: string) =>
  Object.fromEntries(
    text.split(' ').map((label) => {
      const [name, value = ''] = label.split('=')
      return [`${prefix}${name}`, value]
    }),
  )

describe('labels of a namespace', () => {
  test.each<[string, string, string]>([
    ['other=x', 'privileged:latest', 'privileged:latest'],
    ['enforce=baseline', 'baseline:latest', 'baseline:latest'],
    ['enforce=restricted enforce-version=v1.20', 'restricted:v1.20', 'restricted:v1.20'],
    ['enforce=restricted enforce-version=v1.20 warn-version=v1.0', 'restricted:v1.20', 'restricted:v1.0'],
    ['enforce=restricted warn=privileged', 'restricted:latest', 'privileged:latest'],
    ['enforce=restricted warn=baseline', 'restricted:latest', 'baseline:latest'],
    ['enforce=privileged warn=restricted', 'privileged:latest', 'restricted:latest'],
    ['enforce-version=v1.20', 'privileged:v1.20', 'privileged:latest'],
    [
      'enforce=baseline enforce-version=v1.9223372036854775807',
      'baseline:v1.9223372036854775807',
      'baseline:v1.9223372036854775807',
    ],
    ['audit=restricted audit-version=latest', 'privileged:latest', 'privileged:latest'],
    // An invalid level counts as `restricted` in `enforce`, and as `privileged` in `warn`. An invalid version counts as `latest`.
    ['enforce=strict', 'restricted:latest', 'privileged:latest'],
    ['enforce=strict warn=baseline', 'restricted:latest', 'baseline:latest'],
    ['enforce=baseline enforce-version=1.20', 'baseline:latest', 'baseline:latest'],
    ['enforce=baseline warn=strict', 'baseline:latest', 'privileged:latest'],
  ])('%s: the standard for enforcement is %s, and the standard for warnings is %s', (labels, enforce, warn) => {
    const { policy } = policyOf(labelsOf(labels))
    expect([policy.enforce, policy.warn].map(standardText)).toEqual([enforce, warn])
  })

  test('without a pod security label require no standard', () => {
    const unrestricted = policyOf(undefined)
    expect(unrestricted.errors).toEqual([])
    expect(policyOf({ 'kubernetes.io/metadata.name': 'a' })).toEqual(unrestricted)
    expect(Object.values(unrestricted.policy).map(standardText)).toEqual(['privileged:latest', 'privileged:latest'])
  })

  const level = 'must be one of privileged, baseline, restricted'
  const version = 'must be "latest" or "v1.x"'
  test.each<[string, string]>([
    ['enforce=', `Invalid value: "": ${level}`],
    ['audit=Baseline', `Invalid value: "Baseline": ${level}`],
    ['warn=none', `Invalid value: "none": ${level}`],
    ['enforce-version=v1.01', `Invalid value: "v1.01": ${version}`],
    ['audit-version=v2.0', `Invalid value: "v2.0": ${version}`],
    ['warn-version=v1.9223372036854775808', `Invalid value: "v1.9223372036854775808": ${version}`],
  ])('with the invalid label %s have the error %s', (label, text) => {
    expect(policyOf(labelsOf(label)).errors).toEqual([
      { type: 'FieldValueInvalid', field: `metadata.labels[${prefix}${label.split('=')[0]!}]`, text },
    ])
  })
})

describe('the evaluation of the labels of a namespace', () => {
  const evaluation = (labels: string, old?: string) =>
    evaluateLabels(labelsOf(labels), old === undefined ? undefined : { labels: labelsOf(old) }).kind

  test.each<[string, string]>([
    ['enforce=restricted', 'accepted'],
    ['enforce=strict', 'invalid'],
    ['audit=strict', 'invalid'],
  ])('returns for the initial labels %s: %s', (labels, kind) => expect(evaluation(labels)).toBe(kind))

  test.each<[string, string, string]>([
    ['other=x', 'enforce=baseline', 'tightened'],
    ['enforce=baseline', 'enforce=restricted', 'tightened'],
    ['enforce=restricted', 'enforce=baseline', 'accepted'],
    ['enforce=restricted', 'enforce=restricted warn=baseline', 'accepted'],
    ['enforce=restricted', 'other=x', 'accepted'],
    ['enforce=privileged', 'enforce=privileged enforce-version=v1.2', 'accepted'],
    ['enforce=restricted', 'enforce=baseline enforce-version=v1.2', 'tightened'],
    ['enforce=baseline', 'enforce=baseline enforce-version=v1.2', 'tightened'],
    ['enforce=baseline', 'enforce=strict', 'invalid'],
    ['enforce=strict', 'enforce=strict other=x', 'accepted'],
    ['enforce=strict', 'enforce=stricter', 'invalid'],
    ['enforce=strict audit=x', 'audit=x', 'invalid'],
  ])('returns for a change from %s to %s: %s', (old, labels, kind) => expect(evaluation(labels, old)).toBe(kind))

  test('returns for the label enforce=baseline on a namespace without labels: tightened, with the enforced standard', () => {
    expect(evaluateLabels({ [`${prefix}enforce`]: 'baseline' }, { labels: undefined })).toEqual({
      kind: 'tightened',
      enforce: { level: 'baseline', version: 'latest' },
    })
  })
})
