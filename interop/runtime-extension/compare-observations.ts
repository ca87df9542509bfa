/** Compares what the cases observed: upstream's core on both servers, and our core with upstream's. */
import type { Checks } from '../processes/capstan-process.ts'
import type { Observations } from './case-context.ts'

interface Difference {
  /** Pattern of the names of the observations to which this entry applies. */
  readonly what: RegExp
  readonly reason: string
  /** Normalizes the permitted differences, and only these. */
  normalize(text: string): string
}

/** Observations of our core that differ from upstream's, with the reason. */
const explained: readonly Difference[] = [
  {
    what: /: discovered$/,
    reason: "the message of Capstan's condition Discovered begins with a stable word for the cause",
    normalize: (text) => text.replace(/^(False NotDiscovered: )\w+: (?=Error in discovery: )/, '$1'),
  },
  {
    what: /^expired: /,
    reason: "upstream's message contains the current time, so that the condition is written again at every attempt",
    normalize: (text) => text.replace(/: current time .*$/, ''),
  },
  {
    what: /^stranger: /,
    reason: 'a client that is rejected for its certificate only gets a closed connection, for which Go has another text',
    normalize: (text) => text.replace(/(?<=timeout=10s": ).*$/, 'the connection ends'),
  },
  {
    what: /^slow: /,
    reason: 'Go reports the deadline over HTTP/2, and its cause over HTTP/1.1; Capstan always reports the cause',
    normalize: (text) => text.replace(/context deadline exceeded$/, 'http request timeout expired'),
  },
  {
    what: /^unknown-type: /,
    reason: 'upstream applies no patch and then fails at the empty result; Capstan reports the unknown type',
    normalize: (text) => text.replace(/(?<=failed to apply patches for patch "p": ).*$/, 'failed to apply …'),
  },
  {
    what: /^negative: condition$/,
    reason:
      'upstream treats a negative retryAfterSeconds as a blocking response and does not call again; Capstan reports an error that names the field',
    normalize: (text) => text.replace(/^False .*$/s, 'False'),
  },
]

/** Compares the observations. `all`: whether all cases ran, so that each entry of `explained` must apply. */
export function compareObservations(
  observed: { readonly [core: string]: Observations },
  checks: Checks,
  { all: areAllCases }: { all: boolean },
): void {
  const { onCapstan = new Map(), onKubernetes = new Map(), ours = new Map() } = observed
  const reasons = new Set<string>()
  const all = new Set([...onKubernetes.keys(), ...onCapstan.keys(), ...ours.keys()])
  for (const what of all) {
    const [embedded, real, own] = [onCapstan, onKubernetes, ours].map((entry) =>
      withoutRandomValues(entry.get(what) ?? 'nothing'),
    )
    const applied = explained.filter((entry) => entry.what.test(what))
    const normalize = (text: string) => applied.reduce((result, entry) => entry.normalize(result), text)
    compare(`upstream's core has the same observation on both servers: ${what}`, normalize(embedded!), normalize(real!), checks)
    compare(`our core has the same observation as upstream's: ${what}`, normalize(own!), normalize(real!), checks)
    for (const entry of applied) if (entry.normalize(own!) !== own || entry.normalize(real!) !== real) reasons.add(entry.reason)
  }
  for (const reason of reasons) console.log(`permitted difference: ${reason}`)
  if (!areAllCases) return
  for (const { reason } of explained) checks.check(`the listed difference occurs: ${reason}`, reasons.has(reason))
}

function compare(what: string, actual: string, expected: string, checks: Checks): void {
  checks.check(what, actual === expected)
  if (actual !== expected) console.log(`  - ${expected}\n  + ${actual}`)
}

/** Replaces ports and generated names, which differ from run to run. */
const withoutRandomValues = (text: string): string =>
  text
    .replaceAll(/(127\.0\.0\.1|localhost):\d+/g, '$1:PORT')
    .replaceAll(/\b(demo(?:-[a-z]+-\d)?)(?:-[bcdfghjklmnpqrstvwxz2456789]{5})+\b/g, '$1-*')
