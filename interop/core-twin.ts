/**
 * Upstream's core and ours on the same scripts: each on an API server of its own with its webhooks, the same stub providers, and
 * everything compared at rest. `interop/README.md` describes how to add a case.
 */
import { CustomResourceDefinition, messageOf, ValidatingWebhookConfiguration } from '@capstan/kube'
import { startCapstanPlane } from './capstan-plane.ts'
import { startCapstan } from './capstan-process.ts'
import { cases } from './core-twin/cases/index.ts'
import { explained } from './core-twin/explained.ts'
import { report } from './core-twin/normalize.ts'
import { Side } from './core-twin/side.ts'
import { stubDefinitions } from './core-twin/stub-kinds.ts'
import { Twin } from './core-twin/twin.ts'
import type { PlaneOptions, ServedPlane } from './plane.ts'
import { chosenByCommit, type Outcome, type Suite, type SuiteOptions, namesWith } from './suite.ts'
import { startRealPlane } from './real-plane.ts'
import { moduleFolder } from './tools.ts'
import { components, install, managersUser, startManagers } from './upstream/managers.ts'
import { until } from './until.ts'

const core = components.filter(({ tool }) => tool === 'capi-core')
const gates = 'ClusterTopology=true,RuntimeSDK=true,InPlaceUpdates=true,MachinePool=true,MachineTaintPropagation=true'

/** Cases under way at once. */
const Most = 24

export const coreTwinSuite: Suite = {
  shows: "upstream's core and ours on the same scripts: the same objects, events and answers",
  // There are cases whose differences are neither fixed nor explained.
  ci: false,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'capi-core'],
  ownNetwork: true,
  minutes: 30,
  async prepare() {
    for (const { tool, module } of core) await moduleFolder(tool, module)
  },
  async run(options: SuiteOptions = {}) {
    const chosen = chosenCases(options)
    console.log(`${chosen.length} of ${Object.keys(cases).length} cases`)
    const outcome = await compareOn(startCapstanPlane, chosen)
    if (!options.real) return outcome
    const sample = chosen.filter((_, index) => index % 10 === 0)
    console.log(`${sample.length} of ${Object.keys(cases).length} cases on kube-apiserver`)
    const real = await compareOn(startRealPlane, sample)
    return { passed: outcome.passed + real.passed, failed: outcome.failed + real.failed }
  },
}

/** All, those whose names contain a text, or a third that the commit chooses. */
function chosenCases({ all, only }: SuiteOptions): string[] {
  const names = Object.keys(cases)
  if (only !== undefined) return namesWith(names, only)
  if (all) return names
  return chosenByCommit(names, 3)
}

async function compareOn(start: (options: PlaneOptions) => Promise<ServedPlane>, names: readonly string[]): Promise<Outcome> {
  const begun = performance.now()
  await using theirPlane = await start({ users: [managersUser] })
  await using ourPlane = await start({})
  await install(theirPlane.client(), stubDefinitions)
  await install(ourPlane.client(), stubDefinitions)
  await using managers = await startManagers(theirPlane, () => {}, { components: core, gates })
  const flags = ['--kubeconfig', ourPlane.kubeconfig, '--providers', 'core', '--diagnostics-port', '0', '--log-level', 'error']
  const manager = await startCapstan(['manager', ...flags, '--webhook-port', '0'], /Manager ready/)
  try {
    await until(ourPlane.client(), ValidatingWebhookConfiguration, 'webhooks of ours', (found) => found.length > 0)
    await using theirs = await Side.open('theirs', theirPlane, await servedBy(theirPlane))
    await using ours = await Side.open('ours', ourPlane, await servedBy(ourPlane))
    console.log(`both cores ready after ${((performance.now() - begun) / 1000).toFixed(1)} s on ${theirPlane.name}`)
    const outcome = await runAll(names, theirs, ours)
    console.log(`${names.length} cases in ${((performance.now() - begun) / 1000).toFixed(0)} s`)
    for (const program of managers.programs)
      if (program.ending) console.log(`${program.name} ${program.ending}\n${program.tail()}`)
    return outcome
  } finally {
    await manager.kill()
  }
}

async function servedBy(plane: ServedPlane): Promise<ReadonlySet<string>> {
  const { items } = await plane.client().list(CustomResourceDefinition)
  const isServed = (name: string) => name === 'v1beta2' || name === 'v1'
  return new Set(
    items.filter(({ spec }) => spec.versions.some(({ name }) => isServed(name))).map(({ metadata }) => metadata.name),
  )
}

async function runAll(names: readonly string[], theirs: Side, ours: Side): Promise<Outcome> {
  const outcome = { passed: 0, failed: 0 }
  const used = new Set<string>()
  let asked = 0
  const left = [...names]
  const work = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      const twin = new Twin(name, [theirs, ours])
      const begun = performance.now()
      let broken: string | undefined
      try {
        await twin.open()
        await cases[name]!(twin)
      } catch (err) {
        broken = messageOf(err)
      }
      for (const one of twin.explained) used.add(one.what)
      asked += twin.asked
      const isGood = broken === undefined && twin.found.length === 0
      if (isGood) outcome.passed++
      else outcome.failed++
      console.log(`${isGood ? 'same     ' : 'DIFFERENT'}  ${name} (${((performance.now() - begun) / 1000).toFixed(0)} s)`)
      if (broken !== undefined) console.log(`  broken: ${broken}`)
      for (const { step, differences } of twin.found) {
        console.log(`  ${step}`)
        console.log(report(differences).replace(/^/gm, '    '))
      }
    }
  }
  await Promise.all(Array.from({ length: Most }, work))
  console.log(`${asked} answers of admission compared`)
  for (const { what } of explained) if (used.has(what)) console.log(`explained: ${what}`)
  return outcome
}
