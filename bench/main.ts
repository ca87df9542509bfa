/**
 * `npm run bench -- [--short] [--json FILE] [--clusters N,…] [--managers N,…] [--sides NAME,…] [--only TEXT,…] [NAME…]`
 * measures most figures of bench/README.md on this machine; with names, only those of the named benches. bench/README.md explains what limits
 * each figure.
 * `--json` writes the figures to a file; `BenchOptions` explains the other flags. No figure makes the command fail, because machines differ.
 */
import { writeFileSync } from 'node:fs'
import { abuseBench } from './abuse.ts'
import { apiserverBench } from './apiserver.ts'
import { besideBench } from './beside.ts'
import { CannotRun } from '../interop/shared/suite.ts'
import { clustersBench } from './clusters.ts'
import { coldStartBench } from './cold-start.ts'
import { devReloadBench } from './dev-reload.ts'
import type { BenchOptions, Figure } from './figure.ts'
import { hangingHooksBench, hooksBench } from './hooks.ts'
import { managersBench } from './managers.ts'
import { memoryBench } from './memory.ts'
import { workloadClustersBench } from './workload-clusters.ts'
import { unreachableBench } from './unreachable.ts'
import { watchBench } from './watch.ts'

const benches: Readonly<Record<string, (options: BenchOptions) => AsyncIterable<Figure>>> = {
  'cold-start': coldStartBench,
  memory: memoryBench,
  apiserver: apiserverBench,
  watch: watchBench,
  abuse: abuseBench,
  clusters: clustersBench,
  unreachable: unreachableBench,
  'workload-clusters': workloadClustersBench,
  'dev-reload': devReloadBench,
  hooks: hooksBench,
  'hanging-extension': hangingHooksBench,
  beside: besideBench,
  managers: managersBench,
}

const args = process.argv.slice(2)
const short = take('--short') !== undefined
const file = take('--json', true)
const clusters = take('--clusters', true)?.split(',').map(Number)
const managers = take('--managers', true)?.split(',').map(Number)
const only = take('--only', true)
const sides = take('--sides', true)?.split(',')
const unknown = args.filter((name) => !benches[name])
if (unknown.length > 0) {
  console.error(`There is no bench ${unknown.join(', ')}: there are ${Object.keys(benches).join(', ')}`)
  process.exit(2)
}

const figures: Figure[] = []
let code = 0
for (const name of args.length > 0 ? args : Object.keys(benches)) {
  console.log(`\n${name}`)
  try {
    await measure(name)
  } catch (err) {
    if (!(err instanceof CannotRun)) throw err
    console.log(`  cannot run here: ${err.message}`)
    // In CI, a missing tool is a failure.
    if (process.env.CI) code = 1
  }
}
if (file) writeFileSync(file, `${JSON.stringify({ node: process.version, short, figures }, undefined, 2)}\n`)
process.exit(code)

async function measure(name: string): Promise<void> {
  const options = {
    short,
    ...(clusters ? { clusters } : {}),
    ...(managers ? { managers } : {}),
    ...(sides ? { sides } : {}),
    ...(only ? { only } : {}),
  }
  for await (const figure of benches[name]!(options)) {
    figures.push(figure)
    console.log(
      `  ${figure.name.padEnd(64)} ${figure.value.toLocaleString('en', { maximumFractionDigits: 2 }).padStart(12)} ${figure.unit}`,
    )
  }
}

function take(flag: string, withValue = false): string | undefined {
  const index = args.indexOf(flag)
  if (index < 0) return undefined
  const [, value] = args.splice(index, withValue ? 2 : 1)
  return withValue ? value : flag
}
