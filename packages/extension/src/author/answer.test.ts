import * as hooks from '@capstan/api'
import { expect, it } from 'vitest'
import { proceedWith } from './answer.ts'
import { callHook } from '../test-kit/call-hook.ts'
import { defineExtension, on } from './define-extension.ts'
import { fixture } from '../test-kit/fixtures.ts'

const name = 'one'
const patch = { uid: 'u', patchType: 'JSONPatch', patch: 'W10=' } as const

it('proceedWith adds the given content to the response', async () => {
  const [item] = fixture(hooks.GeneratePatches).items
  const extension = defineExtension({
    name: 'demo',
    handlers: [on(hooks.GeneratePatches, { name }, () => proceedWith({ items: [patch] }))],
  })
  expect(await callHook(extension, hooks.GeneratePatches, { items: [{ ...item!, uid: patch.uid }] })).toEqual({
    apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1',
    kind: 'GeneratePatchesResponse',
    status: 'Success',
    items: [patch],
  })
})
