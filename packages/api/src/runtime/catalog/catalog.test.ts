import { readFileSync } from 'node:fs'
import { s } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { defineHook, type Hook, newerVersion, retryResponse } from '../hook.ts'
import { hookCatalog } from '../hooks/catalog.ts'
import { createCatalog } from './catalog.ts'
import { preflight } from './preflight.ts'
import { type ReleasedCatalog, releasedCatalog } from './release.ts'
import { catalogProblems, conversionProblems, elementProblems, removalProblems, replacementProblems } from './rules.ts'

const group = 'hooks.example.com'
const gateV1 = defineHook({
  name: 'Gate',
  group,
  version: 'v1',
  tag: 'Example',
  blocking: true,
  doc: 'Called first.',
  request: { cluster: s.object({ name: s.string(), namespace: s.string() }), urgent: s.boolean().optional() },
  response: { ...retryResponse, reason: s.string().optional() },
})
const gateV1beta1 = defineHook({
  name: 'Gate',
  group,
  version: 'v1beta1',
  tag: 'Example',
  blocking: true,
  doc: 'Called first.',
  request: { clusterName: s.string() },
  response: retryResponse,
  newer: newerVersion(gateV1, {
    requestDown: ({ cluster }) => ({ clusterName: cluster.name }),
    responseUp: (response: { status: 'Success' | 'Failure'; message?: string; retryAfterSeconds: number }) => ({
      ...response,
      ...(response.message ? { reason: response.message } : {}),
    }),
  }),
})
const gateV1alpha1 = defineHook({
  name: 'Gate',
  group,
  version: 'v1alpha1',
  tag: 'Example',
  blocking: true,
  doc: 'Called first.',
  request: { name: s.string() },
  response: { status: s.enum('Success', 'Failure'), wait: s.int32().default(0) },
  newer: newerVersion(gateV1beta1, {
    requestDown: ({ clusterName }) => ({ name: clusterName }),
    responseUp: ({ status, wait }: { status: 'Success' | 'Failure'; wait: number }) => ({ status, retryAfterSeconds: wait }),
  }),
})

describe('a hook in three versions', () => {
  const catalog = createCatalog([gateV1alpha1, gateV1beta1, gateV1])

  test('versions are sorted, newest first', () =>
    expect(catalog.versions(gateV1alpha1).map(({ version }) => version)).toEqual(['v1', 'v1beta1', 'v1alpha1']))

  test('requests are converted down step by step', () => {
    const request = { cluster: { name: 'demo', namespace: 'default' }, urgent: true }
    expect(catalog.requestDown(gateV1, gateV1, request)).toBe(request)
    expect(catalog.requestDown(gateV1, gateV1beta1, request)).toEqual({ clusterName: 'demo' })
    expect(catalog.requestDown(gateV1, gateV1alpha1, request)).toEqual({ name: 'demo' })
  })

  test('responses are converted up step by step', () => {
    expect(catalog.responseUp(gateV1alpha1, gateV1, { status: 'Success', wait: 3 })).toEqual({
      status: 'Success',
      retryAfterSeconds: 3,
    })
    expect(catalog.responseUp(gateV1beta1, gateV1, { status: 'Success', message: 'wait', retryAfterSeconds: 3 })).toEqual({
      status: 'Success',
      message: 'wait',
      reason: 'wait',
      retryAfterSeconds: 3,
    })
  })

  test('responses are not converted from new to old', () =>
    expect(() => catalog.responseUp(gateV1, gateV1alpha1, {})).toThrow(
      'hooks.example.com/v1, Hook=Gate cannot be converted to hooks.example.com/v1alpha1, Hook=Gate',
    ))
})

test('createCatalog rejects a version that is declared twice', () =>
  expect(() => createCatalog([gateV1beta1, gateV1beta1])).toThrow(
    'The hook hooks.example.com/v1beta1, Hook=Gate is declared twice',
  ))

const released = (date: string, ...hooks: Hook[]): ReleasedCatalog => releasedCatalog(`release ${date}`, date, hooks)
const deprecated = <H extends Hook>(hook: H, date: string): H => ({ ...hook, deprecated: { release: 'v2.0.0', date } })
const changed = (hook: Hook, change: { request?: Hook['request']; response?: Hook['response']; blocking?: boolean }): Hook => ({
  ...hook,
  ...change,
})

describe('rule #1: a version keeps its elements', () => {
  const id = 'Rule #1: hooks.example.com/v1beta1, Hook=Gate'
  const request = (fields: object) =>
    changed(gateV1beta1, {
      request: s.object({ apiVersion: s.string(), kind: s.string(), settings: s.map(s.string()).optional(), ...fields }),
    })
  const response = (fields: object) => changed(gateV1beta1, { response: s.object({ ...retryResponse, ...fields }) })
  test.each([
    ['no change', gateV1beta1, []],
    ['an additional field in the request', request({ clusterName: s.string(), more: s.string() }), []],
    ['an additional optional field in the response', response({ more: s.string().optional() }), []],
    ['a removed field', request({}), [`${id}: request.clusterName is gone: that needs a new version`]],
    [
      'another type of a field',
      request({ clusterName: s.int32() }),
      [`${id}: request.clusterName was string and is integer int32: that needs a new version`],
    ],
    [
      'a required field that becomes optional',
      request({ clusterName: s.string().optional() }),
      [`${id}: request.clusterName was required and is optional: that needs a new version`],
    ],
    [
      'a new required field in the response',
      response({ more: s.string() }),
      [`${id}: response.more is new and required: that needs a new version`],
    ],
    [
      'a removed enum value',
      response({ status: s.enum('Success') }),
      [`${id}: response.status may no longer be "Failure": that needs a new version`],
    ],
    [
      'an enum for a field whose values were not limited',
      response({ message: s.enum('yes', 'no').optional() }),
      [`${id}: response.message could have any value and must be one of "yes", "no": that needs a new version`],
    ],
    [
      'a new length limit in the response',
      response({ message: s.string({ maxLength: 10 }).optional() }),
      [`${id}: response.message has maxLength 10 and had none: that needs a new version`],
    ],
    ['a new length limit in the request', request({ clusterName: s.string({ maxLength: 10 }) }), []],
    [
      'a response that can no longer block',
      changed(gateV1beta1, { blocking: false }),
      [`${id} could block and cannot any more: that needs a new version`],
    ],
  ])('a version with %s', (_, newHook, problems) =>
    expect(elementProblems(released('2026-01-01', gateV1beta1), released('2026-05-01', newHook))).toEqual(problems),
  )
})

test('rule #1 applies to the definitions of a schema', () => {
  const tree = (leaf: object) =>
    changed(gateV1beta1, {
      response: s.of({
        ...s.object(retryResponse).json,
        definitions: { Node: { type: 'object', properties: { leaf } } },
      }),
    })
  const [previousRelease, newRelease] = [tree({ type: 'string' }), tree({ type: 'boolean' })].map((hook, index) =>
    released(`2026-0${index + 1}-01`, hook),
  )
  expect(elementProblems(previousRelease!, newRelease!)).toEqual([
    'Rule #1: hooks.example.com/v1beta1, Hook=Gate: response#Node.leaf was string and is boolean: that needs a new version',
  ])
})

describe('rule #2: every version can be converted', () => {
  const { newer: _, ...alone } = gateV1beta1
  test.each([
    ['all versions', [gateV1alpha1, gateV1beta1, gateV1], []],
    [
      'a version without conversion',
      [alone as Hook, gateV1],
      [
        'Rule #2: hooks.example.com/v1beta1, Hook=Gate cannot be converted to hooks.example.com/v1, Hook=Gate: declare its newer version',
      ],
    ],
    [
      'a missing intermediate version',
      [gateV1alpha1, gateV1],
      [
        'Rule #2: hooks.example.com/v1alpha1, Hook=Gate is converted by way of hooks.example.com/v1beta1, Hook=Gate, which is not in the catalog',
      ],
    ],
  ])('a catalog with %s', (_, hooks, problems) => expect(conversionProblems(createCatalog(hooks as Hook[]))).toEqual(problems))
})

describe('rule #3: a deprecated version has a replacement', () => {
  test.each([
    ['a beta version with a stable replacement', [deprecated(gateV1beta1, '2026-05-01'), gateV1], []],
    [
      'a stable version with only a beta replacement',
      [gateV1beta1, deprecated(gateV1, '2026-05-01')],
      ['Rule #3: hooks.example.com/v1, Hook=Gate is deprecated, and no other version that is at least as stable replaces it'],
    ],
    [
      'the only version of a hook',
      [deprecated(gateV1beta1, '2026-05-01')],
      [
        'Rule #3: hooks.example.com/v1beta1, Hook=Gate is deprecated, and no other version that is at least as stable replaces it',
      ],
    ],
  ])('a deprecation of %s', (_, hooks, problems) =>
    expect(replacementProblems(released('2026-05-01', ...(hooks as Hook[])))).toEqual(problems),
  )
})

describe('rule #4: a version is removed after its support window', () => {
  const head = 'Rule #4: hooks.example.com/v1beta1, Hook=Gate is gone'
  const deprecatedRelease = (date: string) => released(date, deprecated(gateV1beta1, '2026-01-10'), gateV1)
  test.each([
    [
      'of a beta version after 6 months and 2 releases',
      [deprecatedRelease('2026-01-10'), deprecatedRelease('2026-05-01')],
      '2026-07-10',
      [],
    ],
    [
      'that is too early, and after too few releases',
      [deprecatedRelease('2026-01-10')],
      '2026-02-01',
      [`${head} before 2026-07-10 and after 1 of 2 releases; it was deprecated in v2.0.0 on 2026-01-10`],
    ],
    [
      'after too few releases',
      [deprecatedRelease('2026-01-10')],
      '2027-02-01',
      [`${head} after 1 of 2 releases; it was deprecated in v2.0.0 on 2026-01-10`],
    ],
    [
      'of a version that was never deprecated',
      [released('2026-01-10', gateV1beta1, gateV1)],
      '2027-02-01',
      [`${head} without having been deprecated`],
    ],
  ])('a removal %s', (_, before, date, problems) =>
    expect(removalProblems(before.at(-1)!, released(date, gateV1), before)).toEqual(problems),
  )

  test('an alpha version may be removed at once', () =>
    expect(removalProblems(released('2026-01-10', gateV1alpha1, gateV1), released('2026-02-01', gateV1), [])).toEqual([]))
})

// Recorded with `capstan hooks catalog`, to detect incompatible changes.
const v1140 = JSON.parse(
  readFileSync(new URL('../../../testdata/hooks-v1.14.0.json', import.meta.url), 'utf8'),
) as ReleasedCatalog

test('core keeps the hooks of v1.14.0', () => {
  const nextCatalog = releasedCatalog('v1.15.0', '2026-12-15', hookCatalog)
  expect(v1140.hooks).toHaveLength(17)
  expect(catalogProblems(createCatalog(hookCatalog), nextCatalog, [v1140])).toEqual([])
})

test('incompatible changes of a hook of v1.14.0 are reported', () => {
  const hooks = hookCatalog.map((hook) =>
    hook.name === 'BeforeClusterUpgrade'
      ? changed(hook, { request: s.object({ cluster: s.any(), fromKubernetesVersion: s.int32() }) })
      : hook,
  )
  const id = 'Rule #1: hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=BeforeClusterUpgrade: request'
  const problems = catalogProblems(createCatalog(hooks), releasedCatalog('v1.15.0', '2026-12-15', hooks), [v1140])
  expect(problems).toContain(`${id}.toKubernetesVersion is gone: that needs a new version`)
  expect(problems).toContain(`${id}.fromKubernetesVersion was string and is integer int32: that needs a new version`)
})

test.each([
  ['v1', []],
  ['v1beta1', ['deprecated hooks.example.com/v1beta1, Hook=Gate is deprecated since v2.0.0']],
  ['v1alpha1', ['gone hooks.example.com/v1alpha1, Hook=Gate is not in release 2026-05-01: it has v1beta1, v1']],
])('preflight of a handler for %s finds %j, when the target deprecates v1beta1 and lacks v1alpha1', (version, findings) => {
  const target = released('2026-05-01', deprecated(gateV1beta1, '2026-05-01'), gateV1)
  const found = preflight([{ name: 'a.b', group, version, hook: 'Gate' }], target)
  expect(found.map(({ kind, message }) => `${kind} ${message}`)).toEqual(findings)
})
