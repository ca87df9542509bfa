import { GeneratePatches } from '@capstan/api'
import { defineKind, draft, s, silent, type UnknownObject } from '@capstan/kube'
import { LocalMachineTemplate } from '@capstan/local'
import fc from 'fast-check'
import { describe, expect, expectTypeOf, it, test } from 'vitest'
import { applyResponseItem } from '../../../core/src/topology/patches/external-patch.ts'
import { callHook } from '../test-kit/call-hook.ts'
import { defineExtension, on } from './define-extension.ts'
import { fixture } from '../test-kit/fixtures.ts'
import { type PatchOptions, patchTemplates } from './patch-templates.ts'
import { template, type TemplateRule } from './template-walk.ts'

const request = fixture(GeneratePatches)
type Request = typeof request

const responseTo = (rules: TemplateRule[], options: PatchOptions = {}, to: Request = request, settings = {}) =>
  callHook(
    defineExtension({ name: 'x', handlers: [on(GeneratePatches, { name: 'patch' }, patchTemplates(rules, options))] }),
    GeneratePatches,
    { ...to, settings },
  )

/** Returns the decoded patches by the kind of their template, or the message of a failure. */
async function patchesOf(rules: TemplateRule[], options?: PatchOptions, to: Request = request) {
  const { status, message, items = [] } = await responseTo(rules, options, to)
  if (status === 'Failure') return message
  return Object.fromEntries(
    items.map(({ uid, patch }) => [
      to.items.find((item) => item.uid === uid)!.object.kind,
      JSON.parse(Buffer.from(patch, 'base64').toString()),
    ]),
  )
}

describe('a template edited by a rule', () => {
  const delay = template({ type: LocalMachineTemplate, holder: { kind: 'MachineDeployment' } }, ({ template, variables }) => {
    expectTypeOf(template).toEqualTypeOf<LocalMachineTemplate>()
    template.spec.template.spec = {
      simulated: { provisioningDelay: `${variables.integer('builtin.machineDeployment.replicas')}s` },
    }
  })

  test.each<[PatchOptions, unknown]>([
    [{}, [{ op: 'replace', path: '/spec/template/spec/simulated/provisioningDelay', value: '2s' }]],
    [{ format: 'JSONMergePatch' }, { spec: { template: { spec: { simulated: { provisioningDelay: '2s' } } } } }],
  ])('is patched, and other templates are not: %j', async (options, patch) => {
    expect(await patchesOf([delay], options)).toEqual({ LocalMachineTemplate: patch })
  })

  it('can have a partially declared kind', async () => {
    const Machines = defineKind({
      group: 'infrastructure.capstan.dev',
      version: 'v1alpha1',
      kind: 'LocalMachineTemplate',
      plural: 'localmachinetemplates',
      scope: 'Namespaced',
      spec: s.object({ template: s.object({ spec: s.object({ zone: s.string().optional() }) }) }),
    })
    const rule = template({ type: Machines }, ({ template }) => {
      template.spec.template.spec.zone = 'b'
    })
    // Fields that are not declared remain unchanged.
    expect(await patchesOf([rule])).toEqual({
      LocalMachineTemplate: [{ op: 'add', path: '/spec/template/spec/zone', value: 'b' }],
    })
  })

  it('can have labels added and removed', async () => {
    const label = template({ kind: 'LocalClusterTemplate' }, ({ template }) => {
      template.metadata.labels = { a: 'b' }
    })
    expect(await patchesOf([label])).toEqual({
      LocalClusterTemplate: [{ op: 'add', path: '/metadata/labels', value: { a: 'b' } }],
    })
    const labelled = draft(request)
    labelled.items[0]!.object.metadata.labels = { a: 'b', c: 'd' }
    const unlabel = template({ kind: 'LocalClusterTemplate' }, ({ template }) => void delete template.metadata.labels)
    // Core ignores the removal of the whole map, so the patch removes each label and leaves an empty map.
    expect(await patchesOf([unlabel], {}, labelled)).toEqual({
      LocalClusterTemplate: [
        { op: 'remove', path: '/metadata/labels/a' },
        { op: 'remove', path: '/metadata/labels/c' },
      ],
    })
  })

  it('is edited by all matching rules in order, including asynchronous ones', async () => {
    const first = template({ kind: 'LocalClusterTemplate' }, async ({ template }) => {
      await Promise.resolve()
      template['spec'] = { template: { spec: { steps: ['first'] } } }
    })
    const second = template({ holder: { fieldPath: 'spec.infrastructureRef' } }, ({ template }) => {
      ;(template['spec'] as { template: { spec: { steps: string[] } } }).template.spec.steps.push('second')
    })
    expect(await patchesOf([first, second])).toEqual({
      LocalClusterTemplate: [{ op: 'add', path: '/spec/template/spec/steps', value: ['first', 'second'] }],
    })
  })

  it('is omitted when it is unchanged; an added empty map is a change, an undefined field is not', async () => {
    const emptyLabels = template({}, ({ template }) => {
      template.metadata.labels = { ...template.metadata.labels }
      template['undefined'] = undefined
    })
    const { items } = await responseTo([template({}, () => undefined)])
    expect([
      items,
      await patchesOf([template({ kind: 'LocalMachineTemplate' }, ({ template }) => void draft(template))]),
    ]).toEqual([[], {}])
    expect(await patchesOf([emptyLabels])).toEqual({
      LocalClusterTemplate: [{ op: 'add', path: '/metadata/labels', value: {} }],
      LocalMachineTemplate: [{ op: 'add', path: '/metadata/labels', value: {} }],
    })
  })

  it('can depend on the settings of the call', async () => {
    const rule = template({ kind: 'LocalClusterTemplate' }, ({ template, settings }) => {
      template.metadata.labels = { region: settings['region']! }
    })
    const { items } = await responseTo([rule], {}, request, { region: 'eu1' })
    expect(Buffer.from(items![0]!.patch, 'base64').toString()).toContain('"region":"eu1"')
  })
})

describe('templates are selected by', () => {
  const [infrastructure, machines] = ['LocalClusterTemplate', 'LocalMachineTemplate']
  test.each<[string, Parameters<typeof template>[0], string[]]>([
    ['an empty selector, which selects all templates', {}, [infrastructure, machines]],
    ['kind', { kind: machines }, [machines]],
    ['apiVersion', { apiVersion: 'infrastructure.capstan.dev/v1alpha1' }, [infrastructure, machines]],
    ['apiVersion, which may select no template', { apiVersion: 'infrastructure.capstan.dev/v1' }, []],
    ['holder', { holder: { kind: 'Cluster', apiVersion: 'cluster.x-k8s.io/v1beta2' } }, [infrastructure]],
    ['field of the holder', { holder: { fieldPath: 'spec.template.spec.infrastructureRef' } }, [machines]],
    ['type', { type: LocalMachineTemplate as never }, [machines]],
    ['type, including its version', { type: { ...LocalMachineTemplate, version: 'v1beta1' } as never }, []],
    ['several conditions, of which all must match', { kind: machines, holder: { kind: 'Cluster' } }, []],
  ])('%s', async (_, selector, kinds) => {
    const templateKinds: string[] = []
    await responseTo([template(selector, ({ template }) => templateKinds.push(template.kind))])
    expect(templateKinds.sort()).toEqual(kinds)
  })
})

describe('the response is a failure', () => {
  const where = 'LocalMachineTemplate of MachineDeployment md-0 (spec.template.spec.infrastructureRef)'
  const machines = { kind: 'LocalMachineTemplate' }
  test.each<[string, TemplateRule, string]>([
    [
      'when a rule throws',
      template(machines, () => {
        throw new Error('no quota')
      }),
      'no quota',
    ],
    ['when the promise of a rule is rejected', template(machines, async () => Promise.reject(new Error('no quota'))), 'no quota'],
    [
      'when a variable is missing',
      template(machines, ({ variables }) => variables.string('zone')),
      'failed to get variable "zone": "zone" is not set',
    ],
    [
      'when a variable is of another type',
      template(machines, ({ variables }) => variables.integer('region')),
      'failed to get variable "region": expected an integer, but it is a string',
    ],
    [
      'when a field is changed that core would not copy',
      template(machines, ({ template }) => {
        template.metadata.name = 'other'
        template.metadata.finalizers = ['x']
        template['status'] = {}
      }),
      'cannot change status, metadata.finalizers, metadata.name: core copies only spec, metadata.labels and metadata.annotations',
    ],
    [
      'when the kind is changed',
      template(machines, ({ template }) => {
        template.kind = 'Other'
      }),
      'cannot change kind: core copies only spec, metadata.labels and metadata.annotations',
    ],
    [
      'when spec is removed',
      template(machines, ({ template }) => void delete template['spec']),
      'cannot remove spec: core leaves it as it was',
    ],
    [
      'when a label is not a string',
      template(machines, ({ template }) => {
        template.metadata.labels = { a: 1 as never }
      }),
      'metadata.labels must map names to strings',
    ],
    [
      'when a value is not JSON',
      template(machines, ({ template }) => {
        template['spec'] = { at: new Date(0) }
      }),
      'spec.at is not JSON: Date',
    ],
  ])('%s', async (_, rule, problem) => {
    expect(await responseTo([rule])).toMatchObject({ status: 'Failure', message: `${where}: ${problem}` })
  })

  it('for a template that does not match its declared type', async () => {
    const odd = draft(request)
    odd.items[1]!.object['spec'] = { template: 'none' }
    expect(await patchesOf([template({ type: LocalMachineTemplate }, () => undefined)], {}, odd)).toBe(
      `${where}: does not match its type: spec.template: Invalid value: "string": spec.template in body must be of type object: "string"`,
    )
  })

  it('for a type without a rule, with failForUnknownTypes', async () => {
    const rules = [template(machines, () => undefined)]
    expect(await patchesOf(rules)).toEqual({})
    expect(await patchesOf(rules, { failForUnknownTypes: true })).toBe(
      'LocalClusterTemplate of Cluster (spec.infrastructureRef): no kind "LocalClusterTemplate" is registered for version "infrastructure.capstan.dev/v1alpha1"',
    )
  })

  it('that names the same template for any order of the items in the request', async () => {
    const rules = [
      template({}, () => {
        throw new Error('no')
      }),
    ]
    const reversed = { ...request, items: [...request.items].reverse() }
    expect(await patchesOf(rules, {}, reversed)).toBe(await patchesOf(rules))
  })
})

it('patchTemplates stops when the caller no longer waits', async () => {
  const stop = new AbortController()
  let calls = 0
  const handle = patchTemplates([
    template({}, () => {
      calls++
      stop.abort(new Error('gone'))
    }),
  ])
  const call = { request: { ...request, apiVersion: '', kind: '' }, settings: {}, log: silent, signal: stop.signal }
  await expect(handle(call)).rejects.toThrow('gone')
  expect(calls).toBe(1)
})

describe.each(['JSONPatch', 'JSONMergePatch'] as const)('random edits, as %s', (format) => {
  const leaf = fc.oneof(fc.integer(), fc.double({ noNaN: true, min: 0.001, max: 9 }), fc.string(), fc.boolean())
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, leaf, fc.array(tie('value')), fc.dictionary(fc.string(), tie('value'))),
  }))
  const spec = fc.dictionary(fc.constantFrom('a', 'b', 'c'), value)
  const labels = fc.option(fc.dictionary(fc.constantFrom('x', 'y/z'), fc.constantFrom('1', '2')), { nil: undefined })

  it('produce the edited template in core, and no patch in a second call', async () => {
    await fc.assert(
      fc.asyncProperty(spec, labels, spec, labels, async (spec, labelsBefore, editedSpec, labelsAfter) => {
        const metadata = {
          name: 'a',
          uid: 'u',
          resourceVersion: '1',
          creationTimestamp: '',
          ...(labelsBefore && { labels: labelsBefore }),
        }
        const object = { apiVersion: 'g/v1', kind: 'T', metadata, spec } as UnknownObject
        const edit = template({}, ({ template }) => {
          template['spec'] = editedSpec
          if (labelsAfter) template.metadata.labels = labelsAfter
          else delete template.metadata.labels
        })
        const itemsFor = async (object: UnknownObject) => {
          const { items = [], message } = await responseTo([edit], { format }, { items: [{ ...request.items[0]!, object }] })
          expect(message).toBeUndefined()
          return items
        }
        const { uid, holderReference } = request.items[0]!
        const item = { uid, holder: holderReference, document: object }
        for (const patchItem of await itemsFor(object)) expect(applyResponseItem([item], patchItem)).toEqual([])
        const { document } = item
        expect([document['spec'], document.metadata.labels ?? {}]).toEqual([editedSpec, labelsAfter ?? {}])
        expect(await itemsFor(document)).toEqual([])
      }),
      { seed: 1, numRuns: 100 * Number(process.env.CAPSTAN_FUZZ ?? 1) },
    )
  })
})
