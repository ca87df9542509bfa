import type { KubeObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import type { External } from '../external/get.ts'
import { type Applier, hasSameSpec } from './apply.ts'
import type { DesiredObject } from './desired-state/desired-object.ts'

type Template = KubeObject & { spec: { items: readonly { name: string; size?: number }[]; policy?: string } }

const aTemplate = (spec: Template['spec']): Template =>
  ({
    apiVersion: 'infra.test/v1',
    kind: 'DevTemplate',
    metadata: { namespace: 'default', name: 't', uid: 'u' },
    spec,
  }) as Template

/** Sets defaults as a provider's webhook does. The default of `policy` is new in this version of the provider. */
const withDefaults = ({ items, policy = 'Retain' }: Template['spec']): Template['spec'] => ({
  items: items.map(({ name, size = 1 }) => ({ name, size })),
  policy,
})

const applier = {
  context: { client: { apply: async (_kind: unknown, object: Template) => ({ ...object, spec: withDefaults(object.spec) }) } },
} as unknown as Applier

// Upstream: dryRunSSAPatch applies the current object as well, v1.14.
test.each<[string, Template['spec'], boolean]>([
  ['true for a desired spec without the defaults of the server', { items: [{ name: 'a' }] }, true],
  ['false for a desired spec with another value', { items: [{ name: 'a', size: 2 }] }, false],
  ['false for a desired spec with another value than the new default', { items: [{ name: 'a' }], policy: 'Delete' }, false],
])('hasSameSpec, with a current object that was written before `policy` had a default, returns %s', async (_, spec, same) => {
  const current = { object: aTemplate({ items: [{ name: 'a', size: 1 }] }) } as unknown as External
  expect(await hasSameSpec(applier, { object: aTemplate(spec) } as unknown as DesiredObject, current)).toBe(same)
})
