import {
  BeforeClusterCreate,
  BeforeClusterUpgrade,
  CanUpdateMachine,
  Discovery,
  GeneratePatches,
  type Hook,
  hookApiVersion,
  hookCatalog,
} from '@capstan/api'
import { seconds, VirtualClock } from '@capstan/kube'
import { describe, expect, it, test } from 'vitest'
import { type Answer, holdFor, proceedNow, proceedWith } from '../author/answer.ts'
import { callHook } from './call-hook.ts'
import { defineExtension, type Handler, on } from '../author/define-extension.ts'
import { fixture } from './fixtures.ts'

const handlerOf = (hook: Hook, answer: (request: never) => Answer): Handler => ({
  name: 'one',
  hook,
  handle: ({ request }) => answer(request),
})
const json = (patch: unknown) => btoa(JSON.stringify(patch))

describe.each(hookCatalog.filter(({ singleton }) => !singleton).map((hook) => [hook.name, hook] as const))('%s', (_, hook) => {
  it('has a fixture that a handler receives as the decoded request', async () => {
    let received: unknown
    const handler = handlerOf(hook, (request) => {
      received = request
      return proceedNow()
    })
    expect(await callHook(handler, hook)).toEqual({
      apiVersion: hookApiVersion(hook),
      kind: `${hook.name}Response`,
      status: 'Success',
      ...(hook.blocking ? { retryAfterSeconds: 0 } : {}),
    })
    expect(received).toEqual({ apiVersion: hookApiVersion(hook), kind: `${hook.name}Request`, ...(fixture(hook) as object) })
  })
})

describe('callHook rejects', () => {
  const patches = (...items: object[]) => handlerOf(GeneratePatches, () => proceedWith({ items }))
  const [{ uid } = { uid: '' }] = fixture(GeneratePatches).items
  test.each<[string, Hook, Handler, RegExp]>([
    [
      'a field of the wrong type',
      GeneratePatches,
      patches({ uid: 5 }),
      /cannot unmarshal number into Go struct field GeneratePatchesResponseItem\.items\.uid/,
    ],
    [
      'a patch that is not base64',
      GeneratePatches,
      patches({ uid, patchType: 'JSONPatch', patch: '[]' }),
      /illegal base64 data at input byte 0/,
    ],
    [
      'a patch of a template that is not in the request',
      GeneratePatches,
      patches({ uid: 'other', patchType: 'JSONPatch', patch: json([]) }),
      /^items\[0\] of the response: the request has no item with uid "other"$/,
    ],
    [
      'a patch that cannot be applied',
      GeneratePatches,
      patches({ uid, patchType: 'JSONPatch', patch: json([{ op: 'remove', path: '/spec/no' }]) }),
      /^items\[0\] of the response: failed to apply patch: .*unable to remove nonexistent key: no/,
    ],
    [
      'a patch without a type',
      CanUpdateMachine,
      handlerOf(CanUpdateMachine, () => proceedWith({ machinePatch: { patch: json([]) } })),
      /^machinePatch of the response: failed to apply patch/,
    ],
    [
      'an unknown status',
      BeforeClusterCreate,
      handlerOf(BeforeClusterCreate, () => proceedWith({ status: 'Fine', message: 'so far' })),
      /^got unknown response status "Fine" with message: so far$/,
    ],
    [
      'a fraction as timeoutSeconds',
      Discovery,
      { ...handlerOf(BeforeClusterCreate, () => proceedNow()), timeoutSeconds: 1.5 },
      /cannot unmarshal number 1\.5 into Go struct field .*timeoutSeconds of type int32/,
    ],
  ])('%s', async (_, hook, handler, message) => {
    await expect(callHook(handler, hook)).rejects.toThrow(message)
  })

  test('discovery with an invalid handler name', async () => {
    const extension = { name: 'x', handlers: [on(BeforeClusterCreate, { name: 'No Name' }, () => proceedNow())] }
    await expect(callHook(extension, Discovery)).rejects.toThrow(/handler name No Name is not valid/)
  })

  test('when the handler throws, with the thrown error as the cause', async () => {
    const bug = new Error('bug')
    const handler = on(BeforeClusterCreate, { name: 'gate' }, () => {
      throw bug
    })
    await expect(callHook(handler, BeforeClusterCreate)).rejects.toMatchObject({
      code: 'bad-status',
      message: expect.stringContaining('status code 500 != 200'),
      cause: bug,
    })
  })
})

test('callHook waits 9 seconds for a handler with timeoutSeconds 0, because the default of 10 seconds applies, as in core', async () => {
  const clock = new VirtualClock()
  const handler = on(BeforeClusterCreate, { name: 'gate', timeoutSeconds: 0 }, async () => {
    clock.step(clock.now() + seconds(9))
    await new Promise((resolve) => setImmediate(resolve))
    return holdFor(5, '')
  })
  const extension = defineExtension({ name: 'x', handlers: [handler] })
  const called = callHook(extension, BeforeClusterCreate, fixture(BeforeClusterCreate), { clock })
  expect(await called).toMatchObject({ retryAfterSeconds: 5 })
})

describe('callHook with several handlers', () => {
  const extension = defineExtension({
    name: 'x',
    handlers: [
      on(BeforeClusterCreate, { name: 'first' }, () => proceedNow()),
      on(BeforeClusterCreate, { name: 'second' }, ({ settings }) => holdFor(5, settings.why ?? '')),
    ],
  })

  test('calls the first handler unless another handler is named', async () => {
    expect(await callHook(extension, BeforeClusterCreate)).toMatchObject({ retryAfterSeconds: 0 })
    const request = { ...fixture(BeforeClusterCreate), settings: { why: 'because' } }
    const called = callHook(extension, BeforeClusterCreate, request, { handler: 'second' })
    expect(await called).toMatchObject({ retryAfterSeconds: 5, message: 'because' })
  })

  test.each([
    [BeforeClusterUpgrade, undefined, 'Extension x has no handler for BeforeClusterUpgrade'],
    [BeforeClusterCreate, 'third', 'Extension x has no handler for BeforeClusterCreate named third'],
  ])(
    'without a matching handler, throws an error that names the hook and, if one was requested, the handler (case %#)',
    async (hook, handler, message) => {
      await expect(callHook<Hook>(extension, hook, fixture<Hook>(hook), handler ? { handler } : {})).rejects.toThrow(message)
    },
  )
})

test('a fixture accepts overrides of single fields, and null to remove a field', () => {
  const { cluster, toKubernetesVersion, fromKubernetesVersion } = fixture(BeforeClusterUpgrade, {
    toKubernetesVersion: 'v1.36.0',
    cluster: { metadata: { labels: { tier: 'prod' }, resourceVersion: null }, spec: { topology: { workers: null } } },
  })
  expect({ toKubernetesVersion, fromKubernetesVersion }).toEqual({
    toKubernetesVersion: 'v1.36.0',
    fromKubernetesVersion: 'v1.34.0',
  })
  expect(cluster.metadata).toMatchObject({ name: 'demo', labels: { team: 'blue', tier: 'prod' } })
  expect(cluster.metadata).not.toHaveProperty('resourceVersion')
  expect(cluster.spec.topology).toMatchObject({ version: 'v1.35.0' })
  expect(cluster.spec.topology).not.toHaveProperty('workers')
})
