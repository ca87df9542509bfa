import {
  customResourceDefinition,
  type DeclaredKind,
  seconds,
  seededRandom,
  type Transport,
  type UnknownObject,
  type WatchEvent,
} from '@capstan/kube'
import { localKinds } from '@capstan/local'
import { localProvider, poolProvider, providerEnv } from '@capstan/testing'
import { describe, expect, test } from 'vitest'
import { lint } from '../lint.ts'
import { conform } from '../live/conform.ts'
import { findPool, findTarget } from '../live/target.ts'
import { providerManifests } from '../manifests.ts'
import { rules } from '../rules/index.ts'
import { type Draft, type Mutant, mutants } from './mutants.ts'

const kindNames = {
  InfraCluster: 'LocalCluster',
  InfraMachinePool: 'LocalMachinePool',
  BootstrapConfig: 'LocalBootstrapConfig',
  ControlPlane: 'LocalControlPlane',
}

const infrastructureNames = { InfraCluster: 'LocalCluster' }

const machinePool: UnknownObject = {
  apiVersion: 'infrastructure.capstan.dev/v1alpha1',
  kind: 'LocalMachinePool',
  metadata: { name: '', uid: '', resourceVersion: '', creationTimestamp: '' },
  spec: { machines: true },
}

const addressPool: UnknownObject = {
  ...machinePool,
  apiVersion: 'ipam.example.com/v1alpha1',
  kind: 'DevPool',
  spec: { addresses: Array.from({ length: 20 }, (_, i) => `10.0.0.${i + 2}`), prefix: 24 },
}

/** Applies the mutant to the CRDs of the local provider, and returns the number of lint findings for the mutant's rule. */
function countFindings({ rule, crd: change }: Mutant): number {
  const manifests = (localKinds as readonly DeclaredKind[]).map((kind) => {
    const crd: Draft = structuredClone(customResourceDefinition(kind))
    change!(kind.plural, crd)
    return { object: crd, file: '', line: 1 }
  })
  return lint(providerManifests(manifests, { isRendered: false }), rules).findings.filter((finding) => finding.rule.id === rule)
    .length
}

describe('lint detects mutants of declarations', () => {
  test.each(mutants.declared.map((mutant) => [`${mutant.rule}: ${mutant.what}`, mutant] as const))('%s', (_, mutant) => {
    expect(countFindings(mutant)).toBeGreaterThan(0)
  })
})

/** Returns the provider's transport with the changes of the mutant. */
function through(transport: Transport, { read, write }: Mutant, starts: () => number): Transport {
  const withReadMutation = (plural: string, object: Draft): Draft => {
    if (!read || object?.metadata === undefined) return object
    const changed = structuredClone(object)
    read(plural, changed)
    return changed
  }
  return {
    close: () => transport.close(),
    async send(request, signal) {
      const { verb, plural, name, subresource } = request
      let sent = request
      if (write && ['create', 'update', 'patch'].includes(verb)) {
        const body = structuredClone(request.body)
        write({ verb, plural, name, subresource, body }, starts())
        sent = { ...request, body }
      }
      const response = (await transport.send(sent, signal)) as Draft
      if (verb === 'list') return { ...response, items: response.items.map((item: Draft) => withReadMutation(plural, item)) }
      return withReadMutation(plural, response)
    },
    async watch(request, signal) {
      const events = await transport.watch(request, signal)
      return (async function* changed(): AsyncGenerator<WatchEvent> {
        for await (const event of events) {
          yield event.type === 'BOOKMARK' ? event : { ...event, object: withReadMutation(request.plural, event.object) }
        }
      })()
    },
  }
}

async function verdictOf(mutant: Mutant): Promise<string> {
  const isIpamMutant = mutant.rule.startsWith('ipam.')
  const provider = isIpamMutant ? poolProvider() : localProvider()
  let starts = 0
  const env = await providerEnv({
    ...provider,
    start(context) {
      starts++
      return provider.start(context)
    },
    between: (transport) => through(transport, mutant, () => starts),
  })
  try {
    const { signal } = new AbortController()
    const report = await env.during(
      conform({
        client: env.client,
        clock: env.clock,
        random: seededRandom(3),
        ...(isIpamMutant
          ? { target: {}, pool: await findPool(env.client, 'DevPool', [addressPool], signal) }
          : {
              target: await findTarget(
                env.client,
                mutant.infrastructureOnly ? infrastructureNames : kindNames,
                [machinePool],
                signal,
              ),
            }),
        rules: rules.filter(({ id }) => id === mutant.rule),
        signal,
        limits: { wait: seconds(30), quiet: seconds(10) },
        versions: { kubernetes: 'v1.36.0', upgradeTo: 'v1.36.1' },
        restart: () => env.restart(),
        progress: () => {},
      }),
      seconds(3600),
    )
    return report.results[0]!.verdict
  } finally {
    await env.close()
  }
}

const named = (mutantList: readonly Mutant[]) => mutantList.map((mutant) => [`${mutant.rule}: ${mutant.what}`, mutant] as const)

/**
 * Whether all mutants of controllers run, as in `npm run interop -- conform --only mutants`. Otherwise one mutant of each rule runs, and no
 * mutant that is declared as not detected.
 */
const runsAll = process.env.CAPSTAN_MUTANTS === '1'
const caught = mutants.controllerMutants.filter(({ survives }) => survives === undefined)
const chosen = runsAll ? caught : caught.filter(({ rule }, index) => caught.findIndex((mutant) => mutant.rule === rule) === index)

describe('conform detects mutants of controllers', () => {
  test.each(named(chosen))('%s', async (_, mutant) => {
    const expected = rules.find(({ id }) => id === mutant.rule)!.level === 'MUST' ? 'fail' : 'warn'
    expect(await verdictOf(mutant)).toBe(expected)
  })
})

test.runIf(runsAll).each(named(mutants.controllerMutants.filter(({ survives }) => survives)))(
  '%s is not detected',
  async (_, mutant) => {
    expect(await verdictOf(mutant)).toBe('pass')
  },
)

test('at most 5 % of at least 80 mutants are declared as not detected', () => {
  const total = [...mutants.declared, ...mutants.controllerMutants]
  expect(total.length).toBeGreaterThanOrEqual(80)
  expect(total.filter(({ survives }) => survives === undefined).length / total.length).toBeGreaterThanOrEqual(0.95)
})
