/** Runs the scenarios with a provider and checks their records against the rules. */
import {
  type Client,
  type Clock,
  ClusterRole,
  CustomResourceDefinition,
  customResourceDefinition,
  isReason,
  isTrue,
  type Kind,
  messageOf,
  orAbsent,
  resourceName,
  sleep,
} from '@capstan/kube'
import { type ContractName, type Manifest, providerManifests, type ProviderManifests } from '../manifests.ts'
import { isChecked, type Problem, type Rule } from '../rule.ts'
import { Bench, type Limits, type BenchOptions } from './bench.ts'
import type { LiveCheck } from './checks/check.ts'
import { type ScenarioName, scenarioNames, scenarios } from './scenarios/index.ts'
import { stubs } from './stubs.ts'
import { type LiveResult, type Observation, type Verdict, Verdicts, verdictOf } from './verdict.ts'
import { metadataOf } from '../manifests.ts'

export interface ConformOptions extends BenchOptions {
  readonly rules: readonly Rule[]
  /** Prefix of the names of the namespaces. Default: conform. */
  readonly prefix?: string
  /** Maximum number of concurrent scenarios. Default: 4. */
  readonly concurrency?: number
}

export interface RuleResult {
  readonly rule: Rule
  readonly verdict: Verdict
  /** Reason why the rule is not applicable or not testable here. */
  readonly reason: string | undefined
  readonly observations: readonly Observation[]
}

export interface ScenarioResult {
  readonly name: ScenarioName
  readonly milliseconds: number
  /** Reason why the scenario ended before its last step. */
  readonly stopped: string | undefined
}

export interface TestedKind {
  readonly contract: ContractName | 'IPAM'
  /** Kind, version and group: `LocalCluster.v1alpha1.infrastructure.capstan.dev`. */
  readonly kind: string
  /** Absent for address pools. */
  readonly contractVersion?: string
}

export interface ConformReport {
  /** The tested kinds. */
  readonly target: readonly TestedKind[]
  /** Start and end in milliseconds since the Unix epoch. */
  readonly startedAt: number
  readonly endedAt: number
  readonly results: readonly RuleResult[]
  readonly scenarios: readonly ScenarioResult[]
  /** Objects that could be deleted only after conform removed their finalizers. */
  readonly leftovers: readonly string[]
}

/** Scenarios that stop the provider. They run one at a time, after all other scenarios. */
const exclusiveScenarios: ReadonlySet<ScenarioName> = new Set(['restarted'])

/** Runs the scenarios that the rules need, deletes the objects that the scenarios created, and returns the verdict of each rule. */
export async function conform(options: ConformOptions): Promise<ConformReport> {
  const { client, clock, signal, rules, prefix = 'conform', concurrency = 4, progress } = options
  const startedAt = clock.now()
  const needed = scenarioNames.filter(
    (name) =>
      rules.some(({ live = [] }) => live.some((check) => check.scenario === name && isUnderTest(check, options))) &&
      (name !== 'restarted' || options.restart !== undefined),
  )
  const benches = new Map<ScenarioName, Bench>()
  const openNamespaces = new Set<string>()
  const results: ScenarioResult[] = []
  const leftovers: string[] = []

  const runScenario = async (name: ScenarioName): Promise<void> => {
    const bench = new Bench(options, `${prefix}-${name}`)
    const scenarioStart = clock.now()
    openNamespaces.add(bench.namespace)
    try {
      await bench.run(scenarios[name])
      benches.set(name, bench)
      results.push({ name, milliseconds: clock.now() - scenarioStart, stopped: bench.stopped })
      const ending = bench.stopped === undefined ? 'done' : `stopped: ${bench.stopped}`
      progress(`${bench.namespace}: ${ending} after ${((clock.now() - scenarioStart) / 1000).toFixed(0)} s`)
    } finally {
      for (const leftover of await bench.close()) leftovers.push(leftover)
      openNamespaces.delete(bench.namespace)
    }
  }

  // The process may be killed before all objects are deleted, so this line names their namespaces.
  const announceInterrupt = () => {
    if (openNamespaces.size > 0) progress(`interrupted: deleting the objects of namespaces ${[...openNamespaces].join(', ')}`)
  }
  signal.addEventListener('abort', announceInterrupt, { once: true })
  const removeStubs = needed.length > 0 ? await installStubs(options) : undefined
  try {
    const queue = needed.filter((name) => !exclusiveScenarios.has(name))
    const worker = async () => {
      for (let name = queue.shift(); name !== undefined; name = queue.shift()) await runScenario(name)
    }
    await waitForAll(Array.from({ length: concurrency }, worker))
    for (const name of needed.filter((scenario) => exclusiveScenarios.has(scenario))) await runScenario(name)
  } finally {
    await removeStubs?.()
    signal.removeEventListener('abort', announceInterrupt)
  }
  signal.throwIfAborted()

  const manifests = await manifestsOf(client, options)
  return {
    target: testedKinds(options),
    startedAt,
    endedAt: clock.now(),
    results: rules.map((rule) => resultOf(rule, manifests, benches, options)),
    scenarios: results.sort((a, b) => scenarioNames.indexOf(a.name) - scenarioNames.indexOf(b.name)),
    leftovers,
  }
}

const testedKinds = ({ target, pool }: BenchOptions): TestedKind[] => [
  ...Object.values(target).map(({ contract, kind, contractVersion }) => ({ contract, kind: fullName(kind), contractVersion })),
  ...(pool ? [{ contract: 'IPAM' as const, kind: fullName(pool.kind) }] : []),
]

const fullName = ({ group, version, kind }: Kind): string => `${kind}.${version}.${group}`

/** Waits until all promises are settled, so that no scenario is still running, and then throws the first failure. */
async function waitForAll(promises: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(promises)).find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
}

const isUnderTest = (
  { contract = 'InfraCluster' }: LiveCheck,
  { target, pool }: Pick<BenchOptions, 'target' | 'pool'>,
): boolean => (contract === 'IPAM' ? pool : target[contract]) !== undefined

function resultOf(
  rule: Rule,
  manifests: ProviderManifests,
  benches: ReadonlyMap<ScenarioName, Bench>,
  options: ConformOptions,
): RuleResult {
  const { target, pool, clock } = options
  const contracts = rule.pages.filter((page) => page !== 'clusterctl')
  if (contracts.length > 0 && !contracts.some((contract) => (contract === 'IPAM' ? pool : target[contract]))) {
    const reason = `no kind of ${contracts.join(' or ').replace('IPAM', 'address pools')} is under test`
    return { rule, verdict: 'not applicable', reason, observations: [] }
  }
  const results: LiveResult[] = []
  if (isChecked(rule)) {
    const problems = rule.check.run(manifests)
    if (problems === undefined)
      results.push({ notApplicable: 'the CustomResourceDefinitions contain nothing to which the rule applies' })
    else if (problems.length > 0) results.push(problems.map((problem) => staticObservation(problem, clock.now())))
    else results.push([passedObservation(rule, manifests, clock.now())])
  }
  for (const check of (rule.live ?? []).filter((liveCheck) => isUnderTest(liveCheck, options)))
    results.push(liveResult(check, benches))
  if (results.length === 0) results.push({ notTestable: 'none' in rule.check ? rule.check.none : 'there is no check' })

  const verdicts = results.map((result) => verdictOf(result, rule.level))
  const verdict = Verdicts.find((candidate) => verdicts.includes(candidate))!
  const reasons = results.flatMap((result) =>
    'notApplicable' in result ? [result.notApplicable] : 'notTestable' in result ? [result.notTestable] : [],
  )
  return {
    rule,
    verdict,
    reason: verdict === 'not applicable' || verdict === 'not testable here' ? reasons.join('; ') : undefined,
    observations: results.flatMap((result) => (Array.isArray(result) ? (result as readonly Observation[]) : [])),
  }
}

function liveResult(check: LiveCheck, benches: ReadonlyMap<ScenarioName, Bench>): LiveResult {
  const bench = benches.get(check.scenario)
  if (bench) return check.run(bench)
  return {
    notTestable:
      check.scenario === 'restarted' ? 'needs a way to restart the provider' : `scenario ${check.scenario} did not run`,
  }
}

const staticObservation = ({ manifest, path, message, edit }: Problem, at: number): Observation => ({
  holds: false,
  object: `CustomResourceDefinition ${metadataOf(manifest).name}`,
  field: path,
  at,
  expected: edit,
  found: message,
})

const passedObservation = (rule: Rule, { kinds, pool }: ProviderManifests, at: number): Observation => ({
  holds: true,
  object: [
    ...kinds.filter(({ contract }) => rule.pages.includes(contract)).map(({ crd }) => crd.metadata.name),
    ...(pool !== undefined && rule.pages.includes('IPAM') ? [pool] : []),
  ]
    .map((name) => `CustomResourceDefinition ${name}`)
    .join(', '),
  field: isChecked(rule) ? rule.check.looksAt : '',
  at,
  expected: rule.sentence,
  found: 'as expected',
})

const stubRole = 'capstan-conform'
const aggregation = { 'cluster.x-k8s.io/aggregate-to-manager': 'true' }

/**
 * Returns the CustomResourceDefinitions of the kinds under test and of their templates, and all ClusterRoles that are aggregated to the role
 * of core, except that of the stubs.
 */
async function manifestsOf(client: Client, { target, pool, signal }: ConformOptions): Promise<ProviderManifests> {
  const manifest = (object: object): Manifest => ({ object: object as Manifest['object'], file: 'cluster', line: 1 })
  const crds = Object.values(target).flatMap(({ crd, template }) => [crd, ...(template ? [template.crd] : [])])
  if (pool) crds.push(pool.crd)
  const roles = await client.list(ClusterRole, {
    labelSelector: Object.entries(aggregation)
      .map((pair) => pair.join('='))
      .join(),
    signal,
  })
  return providerManifests(
    [
      ...crds.map((crd) => manifest({ ...crd, apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' })),
      ...roles.items
        .filter(({ metadata }) => metadata.name !== stubRole)
        .map((role) => manifest({ ...role, apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' })),
    ],
    { isRendered: false, ...(pool ? { pool: pool.crd.metadata.name } : {}) },
  )
}

/**
 * Installs the stub kinds, which replace providers that are not under test, and a ClusterRole that lets core access them. Installs nothing if
 * no scenario needs stubs.
 * @returns a function that removes them
 */
async function installStubs({ client, clock, signal, limits, target, pool }: ConformOptions): Promise<() => Promise<void>> {
  if (!pool && target.ControlPlane && target.BootstrapConfig) return async () => {}
  for (const stub of stubs) {
    const crd = customResourceDefinition(stub)
    await client.apply(CustomResourceDefinition, crd, { fieldManager: stubRole, force: true, signal })
  }
  await client.apply(
    ClusterRole,
    {
      metadata: { name: stubRole, labels: aggregation },
      rules: [{ apiGroups: [stubs[0]!.group], resources: ['*'], verbs: ['*'] }],
    },
    { fieldManager: stubRole, force: true, signal },
  )
  await untilEstablished(client, clock, limits, signal)
  return async () => {
    const timeLimit = AbortSignal.timeout(60_000)
    for (const stub of stubs) {
      await orAbsent(client.delete(CustomResourceDefinition, { name: resourceName(stub) }, { signal: timeLimit }))
    }
    await orAbsent(client.delete(ClusterRole, { name: stubRole }, { signal: timeLimit }))
  }
}

async function untilEstablished(client: Client, clock: Clock, limits: Limits, signal: AbortSignal): Promise<void> {
  const deadline = clock.now() + limits.wait
  for (const stub of stubs) {
    for (;;) {
      const crd = await client.get(CustomResourceDefinition, { name: resourceName(stub) }, { signal })
      if (isTrue(crd, 'Established') && (await isServed(client, stub, signal))) break
      if (clock.now() > deadline)
        throw new Error(`CustomResourceDefinition ${resourceName(stub)} is not Established, or its kind is not served`)
      await sleep(clock, 200, signal)
    }
  }
}

async function isServed(client: Client, kind: (typeof stubs)[number], signal: AbortSignal): Promise<boolean> {
  try {
    await client.list(kind, { limit: 1, signal })
    return true
  } catch (err) {
    if (isReason(err, 'NotFound')) return false
    throw new Error(`Cannot list ${resourceName(kind)}: ${messageOf(err)}`, { cause: err })
  }
}
