import { execFileSync } from 'node:child_process'
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  AfterControlPlaneInitialized,
  BeforeClusterCreate,
  BeforeClusterDelete,
  CanUpdateMachine,
  defineHook,
  DiscoverVariables,
  GeneratePatches,
  GenerateUpgradePlan,
  retryResponse,
  UpdateMachine,
  ValidateTopology,
} from '@capstan/api'
import { s } from '@capstan/kube'
import { afterAll, describe, expect, it, test } from 'vitest'
import { fail, holdFor, proceedNow, proceedWith } from '../author/answer.ts'
import { defineExtension, type Handler, on } from '../author/define-extension.ts'
import { fixture } from '../test-kit/fixtures.ts'
import { inPlaceUpdates } from '../author/in-place-answers.ts'
import { patchTemplates } from '../author/patch-templates.ts'
import { template } from '../author/template-walk.ts'
import { type CheckOptions, checkExtension, checkModule, checkText } from './check-extension.ts'

const checked = (handlers: Handler[], options: CheckOptions = {}) =>
  checkExtension(defineExtension({ name: 'x', handlers }), options)
const json = (patch: unknown) => btoa(JSON.stringify(patch))

/** Returns a handler that returns one patch for each template. */
const patching = (patchOf: (item: { object: object }, index: number, all: readonly unknown[]) => unknown): Handler =>
  on(GeneratePatches, { name: 'patches' }, ({ request }) =>
    proceedWith({
      items: request.items.map((item, index, items) => ({
        uid: item.uid,
        patchType: 'JSONMergePatch' as const,
        patch: json({ spec: patchOf(item, index, items) }),
      })),
    }),
  )

describe('a deterministic extension', () => {
  const inPlace = inPlaceUpdates({ machine: ['version'] })
  const calledUIDs = new Set<string>()
  const good = [
    on(BeforeClusterCreate, { name: 'gate' }, ({ request }) => {
      const { uid } = request.cluster.metadata
      if (calledUIDs.has(uid)) return proceedNow()
      calledUIDs.add(uid)
      return holdFor(5, 'preparing')
    }),
    on(BeforeClusterDelete, { name: 'delete' }, () => holdFor(5, 'backing up')),
    on(AfterControlPlaneInitialized, { name: 'initialized' }, () => fail('not for this one')),
    on(UpdateMachine, { name: 'update' }, () => holdFor(5, 'installing')),
    on(CanUpdateMachine, { name: 'can' }, inPlace.canUpdateMachine),
    on(
      GeneratePatches,
      { name: 'patches' },
      patchTemplates([
        template({}, ({ template, variables }) => {
          template.metadata.labels = { ...template.metadata.labels, region: variables.string('region') }
        }),
      ]),
    ),
    on(ValidateTopology, { name: 'validation' }, ({ request }) => fail(`${request.items.length} templates are too many`)),
    on(DiscoverVariables, { name: 'variables' }, () => proceedWith({ variables: [] })),
    on(GenerateUpgradePlan, { name: 'plan' }, () => proceedWith({ controlPlaneUpgrades: [], workersUpgrades: [] })),
  ]

  it('has no findings', async () => {
    expect(checkText(await checked(good))).toBe(
      '9 handlers called with 10 requests in one process: deterministic and idempotent, as far as these calls show',
    )
  })
})

let calls = 0
test.each<[string, Handler, string]>([
  [
    'a counter in the message',
    on(BeforeClusterCreate, { name: 'gate' }, () => holdFor(5, `call ${calls++}`)),
    'BeforeClusterCreate of gate: its message changes from call to call, so that core writes the condition at each call: message: "call 0" in the first response, "call 1" in the second (the fixture)',
  ],
  [
    'a retryAfterSeconds that changes from call to call',
    on(BeforeClusterCreate, { name: 'gate' }, () => holdFor(10 + (calls++ % 2), 'wait')),
    'BeforeClusterCreate of gate: retryAfterSeconds is 10, and 11 for the same request: use a constant, so that equal requests get equal responses (the fixture)',
  ],
  [
    'a handler that proceeds and then blocks for the same request',
    on(BeforeClusterCreate, { name: 'gate' }, () => (calls++ % 2 === 0 ? proceedNow() : holdFor(5, 'wait'))),
    'BeforeClusterCreate of gate: its first response proceeds, and its second response to the same request blocks (the fixture)',
  ],
  [
    'the time in a patch',
    patching(() => ({ made: Date.now() })),
    'GeneratePatches of patches: two calls with the same request have different responses: items.LocalClusterTemplate of Cluster demo[0].patch.spec.made: <number> in the first response, <number> in the second (the fixture)',
  ],
  [
    'a random value in a patch',
    patching(() => ({ id: Math.random() })),
    'GeneratePatches of patches: two calls with the same request have different responses: items.LocalClusterTemplate of Cluster demo[0].patch.spec.id: <number> in the first response, <number> in the second (the fixture)',
  ],
  [
    'a plan that changes from call to call',
    on(GenerateUpgradePlan, { name: 'plan' }, () => proceedWith({ controlPlaneUpgrades: [{ version: `v1.${calls++}.0` }] })),
    'GenerateUpgradePlan of plan: two calls with the same request have different responses: controlPlaneUpgrades[0].version: "v1.0.0" in the first response, "v1.1.0" in the second (the fixture)',
  ],
  [
    'a patch that depends on the position of a template',
    patching((_, index) => ({ nth: index })),
    'GeneratePatches of patches: its response depends on the order of items, variables or object members: LocalClusterTemplate of Cluster demo.spec.nth: 0 in one order, 1 in the other (the fixture)',
  ],
  [
    'a validation result that depends on the order of templates',
    on(ValidateTopology, { name: 'validation' }, ({ request }) => fail(`no ${request.items[0]!.object.kind}`)),
    'ValidateTopology of validation: its response depends on the order of items, variables or object members: message: "no LocalClusterTemplate" in one order, "no LocalMachineTemplate" in the other (the fixture)',
  ],
  [
    'a handler that fails for another order of templates',
    on(ValidateTopology, { name: 'validation' }, ({ request }) => {
      const { kind } = request.items[0]!.object
      if (kind !== 'LocalClusterTemplate') throw new Error(`${kind} is first`)
      return proceedNow()
    }),
    'ValidateTopology of validation: it fails when items, variables and object members are in another order: LocalMachineTemplate is first (the fixture)',
  ],
  [
    'a list that grows with each patch',
    patching(({ object }) => {
      const { spec } = object as { spec: { args?: string[] } }
      return { args: [...(spec.args ?? []), '--x'] }
    }),
    'GeneratePatches of patches: its response for objects that it has already patched has further changes: LocalClusterTemplate of Cluster demo.spec.args[1]: nothing after its first response, "--x" after its second response (the fixture)',
  ],
  [
    'a patch operation that applies only once',
    on(GeneratePatches, { name: 'patches' }, ({ request }) => {
      const item = request.items.find(({ object }) => object.kind === 'LocalMachineTemplate')!
      const path = '/spec/template/spec/simulated'
      const spec = (item.object as unknown as { spec: { template: { spec: object } } }).spec.template.spec
      if (!('simulated' in spec)) throw new Error('nothing is simulated')
      return proceedWith({ items: [{ uid: item.uid, patchType: 'JSONPatch', patch: json([{ op: 'remove', path }]) }] })
    }),
    'GeneratePatches of patches: it fails for objects that it has patched: nothing is simulated (the fixture)',
  ],
  [
    'an in-place update that is never complete',
    on(CanUpdateMachine, { name: 'can' }, ({ request }) => {
      const { version } = request.current.machine.spec
      return proceedWith({ machinePatch: { patchType: 'JSONMergePatch', patch: json({ spec: { version: `${version}+1` } }) } })
    }),
    'CanUpdateMachine of can: its response for objects that it has already patched has further changes: current.machine.spec.version: "v1.34.0+1" after its first response, "v1.34.0+1+1" after its second response (the fixture)',
  ],
  [
    'a handler that changes its request',
    on(BeforeClusterCreate, { name: 'gate' }, ({ request }) => {
      request.cluster.metadata.labels = { mine: 'now' }
      return proceedNow()
    }),
    'BeforeClusterCreate of gate: it modifies its request at cluster.metadata.labels.mine, cluster.metadata.labels.team; the request then no longer contains the values from core (the fixture)',
  ],
  [
    'a handler that throws',
    on(BeforeClusterCreate, { name: 'gate' }, ({ settings }) => holdFor(Number(settings.seconds), 'wait')),
    'BeforeClusterCreate of gate: it throws: Cannot hold for NaN seconds: expected a whole number from 1 to 2147483647 (the fixture)',
  ],
  [
    'a response that core rejects',
    on(GeneratePatches, { name: 'patches' }, () =>
      proceedWith({ items: [{ uid: 'no', patchType: 'JSONPatch', patch: json([]) }] }),
    ),
    'GeneratePatches of patches: core rejects its response: items[0] of the response: the request has no item with uid "no" (the fixture)',
  ],
])('reports %s', async (_, handler, sentence) => {
  calls = 0
  const { findings } = await checked([handler])
  expect(findings.map(({ message }) => message.replaceAll(/\b(?:\d{13}|0\.\d{4,})\b/g, '<number>'))).toEqual([sentence])
})

test('calls handlers with the fixtures, to which it adds the settings, and with the requests of the options', async () => {
  const requests: unknown[] = []
  const gateHandler = on(BeforeClusterCreate, { name: 'gate' }, ({ request, settings }) => {
    requests.push([request.cluster.metadata.name, settings])
    return request.cluster.metadata.name === 'odd' ? holdFor(1 + calls++, 'wait') : proceedNow()
  })
  const request = fixture(BeforeClusterCreate, { cluster: { metadata: { name: 'odd' } } })
  const { findings } = await checked([gateHandler], {
    settings: { region: 'eu1' },
    requests: [
      { hook: 'BeforeClusterCreate', request, from: 'line 4 of calls.tape' },
      { hook: 'BeforeClusterCreate', handler: 'other', request, from: 'line 5 of calls.tape' },
    ],
  })
  expect(requests.slice(0, 2)).toEqual([
    ['demo', { region: 'eu1' }],
    ['odd', {}],
  ])
  expect(findings).toMatchObject([{ kind: 'retry', hook: 'BeforeClusterCreate', handler: 'gate', from: 'line 4 of calls.tape' }])
})

test('names the source of the request that a handler changed', async () => {
  const handler = on(BeforeClusterCreate, { name: 'gate' }, ({ request }) => {
    if (request.cluster.metadata.name === 'odd') request.cluster.metadata.name = 'even'
    return proceedNow()
  })
  const request = fixture(BeforeClusterCreate, { cluster: { metadata: { name: 'odd' } } })
  const { findings } = await checked([handler], {
    requests: [{ hook: 'BeforeClusterCreate', request, from: 'line 4 of calls.tape' }],
  })
  expect(findings).toMatchObject([{ kind: 'mutates', from: 'line 4 of calls.tape' }])
})

test('reports a handler for which no request can be derived, unless requests are given', async () => {
  const Provision = defineHook({
    name: 'Provision',
    group: 'hooks.example.com',
    version: 'v1',
    tag: 'Example',
    blocking: true,
    doc: 'Called first.',
    request: { machine: s.string({ pattern: '^[0-9]$' }) },
    response: retryResponse,
  })
  const handler = on(Provision, { name: 'provision' }, ({ request }) => holdFor(5, request.machine))
  const text = checkText(await checked([handler]))
  expect(text).toMatch(
    /^Provision of provision: not called, because no valid request can be derived from its declaration: pass requests\n/,
  )
  const request = { hook: 'Provision', request: { machine: '1' }, from: 'the example' }
  expect(await checked([handler], { requests: [request] })).toMatchObject({ uncalled: [], findings: [], requests: 2 })
})

describe('in several processes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-check-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const sources = ['api', 'extension'].map((name) => new URL(`../../../${name}/src/index.ts`, import.meta.url).href)
  let written = 0
  const module = (text: string): URL => {
    const file = join(folder, `extension-${written++}.ts`)
    const imports = `import { BeforeClusterCreate, DiscoverVariables } from '${sources[0]}'\nimport { defineExtension, holdFor, on, proceedNow, proceedWith } from '${sources[1]}'\n`
    writeFileSync(file, imports + text)
    return pathToFileURL(file)
  }
  const extension = (...handlers: string[]) =>
    `export const extension = defineExtension({ name: 'x', handlers: [${handlers.join(', ')}] })\n`
  const gateHandler = (name: string, answer: string) => `on(BeforeClusterCreate, { name: '${name}' }, ({ request }) => ${answer})`

  test('reports dependencies on the process, the time or the locale, with their cause', async () => {
    const text = extension(
      gateHandler('day', 'holdFor(5, `since ${new Date().toISOString().slice(0, 10)}`)'),
      gateHandler('zone', 'holdFor(5, `at ${new Date(0).getHours()} h`)'),
      gateHandler('language', 'holdFor(5, (1234.5).toLocaleString())'),
      gateHandler('chance', 'holdFor(5, `as ${secret}`)'),
      // Its messages already differ within one process, so a difference between processes is not reported.
      gateHandler('clock', 'holdFor(5, `at ${Date.now()}`)'),
      gateHandler('good', 'holdFor(5, request.cluster.metadata.name)'),
    )
    const { findings, processes } = await checkModule(module(`const secret = Math.random().toString(36)\n${text}`))
    const reported = findings.map(({ kind, handler, message }) => [kind, handler, /\(([^(]*)\): message/.exec(message)?.[1]])
    expect(reported).toEqual([
      ['message', 'clock', undefined],
      ['process', 'day', 'at another time'],
      ['process', 'zone', 'in another time zone and language'],
      ['process', 'language', 'in another time zone and language'],
      ['process', 'chance', 'without any change: it depends on randomness or on the process'],
    ])
    expect(processes).toBe(6)
  })

  test('checks a deterministic extension in two processes, even if it prints to stdout', async () => {
    const report = await checkModule(module(`console.log('hello')\n${extension(gateHandler('good', 'proceedNow()'))}`))
    expect(checkText(report)).toBe(
      '1 handler called with 2 requests in 2 processes: deterministic and idempotent, as far as these calls show',
    )
  })

  test.each([
    ['does not load', 'throw new Error("no database")', /^Cannot check .*extension-\d+\.ts: no database$/],
    ['ends the process', 'process.exit(3)', /^Cannot check .*extension-\d+\.ts: the process ended early \(exit code 3\)/],
  ])('the error for a module that %s names the file', async (_, text, message) => {
    await expect(checkModule(module(text))).rejects.toThrow(message)
  })

  test.runIf(process.platform !== 'win32')('an abort ends the processes of a module whose load never completes', async () => {
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    const text = `import { openSync, writeSync } from 'node:fs'\nwriteSync(openSync('${pipe}', 'w'), 'x')\nwhile (true) {}\n`
    const interrupted = new AbortController()
    const checking = checkModule(module(text), { signal: interrupted.signal })
    await Promise.all([
      expect(checking).rejects.toThrow('The operation was aborted'),
      // The pipe ends when every process that opened it has ended.
      (async () => {
        let started = 0
        for await (const chunk of createReadStream(pipe)) {
          started += (chunk as Buffer).length
          if (started === 2) interrupted.abort()
        }
      })(),
    ])
  })
})

test('the report contains every finding', async () => {
  calls = 0
  const handlers = ['one', 'two'].map((name) => on(BeforeClusterCreate, { name }, () => holdFor(5, `call ${calls++}`)))
  const lines = checkText(await checked(handlers)).split('\n')
  expect(lines).toHaveLength(3)
  expect(lines.at(-1)).toBe('2 handlers called with 3 requests in one process: 2 findings')
})
