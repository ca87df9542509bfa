/**
 * Compares the observations of the cases: those of upstream's core on `capstan apiserver`, and those of our core, with those of upstream's
 * core on kube-apiserver.
 */
import type { Checks } from '../processes/capstan-process.ts'
import type { Observations } from './case-context.ts'

interface Difference {
  /** Pattern of the names of the observations to which this entry applies. */
  readonly names: RegExp
  readonly reason: string
  /** Normalizes the permitted differences, so that the other parts of the text are compared. */
  normalize(text: string): string
}

/** Permitted differences between observations, each with the reason. */
const explained: readonly Difference[] = [
  {
    names: /: discovered$/,
    reason: "the message of Capstan's condition Discovered begins with a constant word for the cause",
    normalize: (text) => text.replace(/^(False NotDiscovered: )\w+: (?=Error in discovery: )/, '$1'),
  },
  {
    names: /^expired: /,
    reason: "upstream's message contains the current time, so that the condition is written again at every attempt",
    normalize: (text) => text.replace(/: current time .*$/, ''),
  },
  {
    names: /^stranger: /,
    reason:
      'the server closes the connection of a client without a valid certificate, and Go and Node report this with different texts',
    normalize: (text) => text.replace(/(?<=timeout=10s": ).*$/, 'the connection ends'),
  },
  {
    names: /^slow: /,
    reason:
      'Go reports "context deadline exceeded" over HTTP/2 and "http request timeout expired" over HTTP/1.1; Capstan always reports the second text',
    normalize: (text) => text.replace(/context deadline exceeded$/, 'http request timeout expired'),
  },
  {
    names: /^unknown-type: /,
    reason: 'upstream applies no patch and then fails at the empty result; Capstan reports the unknown type',
    normalize: (text) => text.replace(/(?<=failed to apply patches for patch "p": ).*$/, 'failed to apply …'),
  },
  {
    names: /^negative: condition$/,
    reason:
      'upstream treats a negative retryAfterSeconds as a blocking response and does not call again; Capstan reports an error that names the field',
    normalize: (text) => text.replace(/^False .*$/s, 'False'),
  },
]

/** Compares the observations. If `allCasesRan`, each entry of `explained` must change a text of one of the two cores. */
export function compareObservations(
  { onCapstan, onKubernetes, ours }: Readonly<Record<'onCapstan' | 'onKubernetes' | 'ours', Observations>>,
  checks: Checks,
  { allCasesRan }: { allCasesRan: boolean },
): void {
  const reasons = new Set<string>()
  const names = new Set([...onKubernetes.keys(), ...onCapstan.keys(), ...ours.keys()])
  for (const name of names) {
    const [capstan, real, own] = [onCapstan, onKubernetes, ours].map((entry) => withoutRandomValues(entry.get(name) ?? 'nothing'))
    const applied = explained.filter((entry) => entry.names.test(name))
    const normalize = (text: string) => applied.reduce((result, entry) => entry.normalize(result), text)
    compare(`upstream's core has the same observation on both servers: ${name}`, normalize(capstan!), normalize(real!), checks)
    compare(`our core has the same observation as upstream's: ${name}`, normalize(own!), normalize(real!), checks)
    for (const entry of applied) if (entry.normalize(own!) !== own || entry.normalize(real!) !== real) reasons.add(entry.reason)
  }
  for (const reason of reasons) console.log(`permitted difference: ${reason}`)
  if (!allCasesRan) return
  for (const { reason } of explained) checks.check(`the listed difference occurs: ${reason}`, reasons.has(reason))
}

function compare(description: string, actual: string, expected: string, checks: Checks): void {
  checks.check(description, actual === expected)
  if (actual !== expected) console.log(`  - ${expected}\n  + ${actual}`)
}

/** Replaces ports and generated names, which differ from run to run. */
const withoutRandomValues = (text: string): string =>
  text
    .replaceAll(/(127\.0\.0\.1|localhost):\d+/g, '$1:PORT')
    .replaceAll(/\b(demo(?:-[a-z]+-\d)?)(?:-[bcdfghjklmnpqrstvwxz2456789]{5})+\b/g, '$1-*')
