import { type CustomResourceDefinition, customResourceDefinition, defineKind, s } from '@capstan/kube'
import { expect, test } from 'vitest'
import { mergedSpec } from './merge-definition.ts'

const Widget = defineKind({
  group: 'shop.example.com',
  version: 'v2',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  spec: s.object({ width: s.int32().optional() }),
})
const ownSpec = customResourceDefinition(Widget).spec
const webhook = { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig: { url: 'https://theirs' } } }

const existing = (versions: object[], overrides: { storedVersions?: string[]; conversion?: object } = {}) =>
  ({
    metadata: { name: 'widgets.shop.example.com' },
    spec: { ...ownSpec, versions, ...(overrides.conversion ? { conversion: overrides.conversion } : {}) },
    status: { storedVersions: overrides.storedVersions ?? ['v2'] },
  }) as unknown as CustomResourceDefinition
const version = (name: string, served: boolean, storage = false) => ({ name, served, storage, schema: {} })
const names = (versions: readonly { name: string; served: boolean; storage: boolean }[]) =>
  versions.map(({ name, served, storage }) => `${name}${served ? ' served' : ''}${storage ? ' storage' : ''}`)

test('keeps served versions, versions with stored objects and the storage version; drops others; makes our version the storage version', () => {
  const versions = [
    version('v2', true),
    version('v1', true),
    version('v0', false),
    version('v1alpha', false),
    version('v3', false, true),
  ]
  expect(names(mergedSpec(ownSpec, existing(versions, { storedVersions: ['v0'] })).versions)).toEqual([
    'v2 served storage',
    'v1 served',
    'v0',
    'v3',
  ])
})

test('keeps the existing conversion if an existing version is kept, unless our definition has a conversion', () => {
  const existingDefinition = existing([version('v2', true, true), version('v1', true)], { conversion: webhook })
  expect(mergedSpec(ownSpec, existingDefinition).conversion).toEqual(webhook)
  const ownConversion = {
    strategy: 'Webhook' as const,
    webhook: { conversionReviewVersions: ['v1'], clientConfig: { url: 'https://ours' } },
  }
  expect(mergedSpec({ ...ownSpec, conversion: ownConversion }, existingDefinition).conversion).toEqual(ownConversion)
})

test('drops the existing conversion when only our versions remain', () => {
  const existingDefinition = existing([version('v2', true, true), version('v1', false)], { conversion: webhook })
  expect(mergedSpec(ownSpec, existingDefinition)).toEqual(ownSpec)
})
