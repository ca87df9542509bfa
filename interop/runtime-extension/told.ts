/** What the cases saw of each core, held against each other: upstream's on both servers, and ours against upstream's. */
import type { Checks } from '../capstan-process.ts'
import type { Told } from './scene.ts'

interface Difference {
  /** Of what is told; of everything when absent. */
  readonly what: RegExp
  readonly reason: string
  /** Makes the two alike where they may differ, and nowhere else. */
  alike(text: string): string
}

/** Where our core says something else than upstream's, with the reason. */
const explained: readonly Difference[] = []

export function compareTold(told: { readonly [core: string]: Told }, checks: Checks): void {
  const { onCapstan = new Map(), onKubernetes = new Map(), ours = new Map() } = told
  const all = new Set([...onKubernetes.keys(), ...onCapstan.keys(), ...ours.keys()])
  for (const what of all) {
    const [embedded, real, own] = [onCapstan, onKubernetes, ours].map((one) => withoutChance(one.get(what) ?? 'nothing'))
    compare(`upstream's core says the same on both servers: ${what}`, embedded!, real!, checks)
    const applied = explained.filter((one) => one.what.test(what))
    const alike = (text: string) => applied.reduce((now, one) => one.alike(now), text)
    compare(`our core says what upstream's does: ${what}`, alike(own!), alike(real!), checks)
  }
}

function compare(what: string, ours: string, theirs: string, checks: Checks): void {
  checks.check(what, ours === theirs)
  if (ours !== theirs) console.log(`  - ${theirs}\n  + ${ours}`)
}

/** Ports and generated names differ from run to run. */
const withoutChance = (text: string): string =>
  text.replaceAll(/127\.0\.0\.1:\d+/g, 'HOST').replaceAll(/\b(demo(?:-[a-z]+-\d)?)-[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, '$1-*')
