/**
 * Normalizes parts of the output that can differ between any two runs: identities, times, counters, addresses, random values. Removes log
 * lines of kubectl that depend on timing.
 */
import { isRecord } from '@capstan/kube'

const replacements: readonly (readonly [RegExp, string])[] = [
  [/https:\/\/127\.0\.0\.1:\d+/g, 'https://SERVER'],
  [/127\.0\.0\.1:\d+/g, 'SERVER'],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, 'JWT'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, 'UID'],
  [/X509SHA256=[0-9a-f]{64}/g, 'X509SHA256=HASH'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, 'TIME'],
  [/\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, 'TIME'],
  [/\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?( [+-]\d{4}( \w+)?( m=\S+)?)?/g, 'TIME'],
  // The next two patterns remove whole lines. Whether kubectl prints these lines depends on the timing of watches.
  [/^I\d{4} .* reflector\.go:\d+\] "Warning: watch ended with error".*very short watch.*\n/gm, ''],
  [/^E\d{4} .* reflector\.go:\d+\] .*context deadline exceeded.*\n/gm, ''],
  // Prefix of a line of klog: severity, date, time, process.
  [/^([EWIF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ /gm, '$1 '],
  [/("?resourceVersion\\?"?: ?\\?"?)\d+/gi, '$1RV'],
  [/(Resource ?Version: +)\d+/g, '$1RV'],
  [/("?continue"?: ?")[\w-]{20,}/g, '$1TOKEN'],
  // Paths of temporary files.
  [/\/tmp\/(LIVE|MERGED|kubectl-edit)-\d+/g, '/tmp/$1-N'],
  [/kubectl-edit-\d+\.yaml/g, 'kubectl-edit-N.yaml'],
  [/(-----BEGIN CERTIFICATE-----)[\s\S]*?(-----END CERTIFICATE-----)/g, '$1$2'],
  [/\b10\.\d+\.\d+\.\d+\b/g, 'CLUSTER-IP'],
  [/(nodePort"?: |NodePort: +\S* +|:)3\d{4}\b/g, '$1NODE-PORT'],
  [/-[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, '-RANDOM'],
  // Memory addresses in panics of kubectl: v1.36.2 panics in `auth reconcile`.
  [/\b0x[0-9a-f]+\b/g, '0xN'],
  // Ages and other durations, such as in the columns AGE and DURATION.
  [/(?<=[ \t(]|^)(\d+(ms|[smhdy]))+(?=$|[ \t)])/gm, 'AGE'],
  [/<(invalid|unknown)>(?=$)/gm, 'AGE'],
  [/\b\d+ seconds? ago\b/g, 'AGE ago'],
]

/** Normalizes the output of a command, including the number of spaces between columns. */
export function normalized(output: string): string {
  const json = sortedJSON(output)
  if (json !== undefined) return normalized(json)
  const replaced = replacements.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), output)
  return replaced.replace(/(?<=\S) {2,}/g, '  ').replace(/[ \t]+$/gm, '')
}

/**
 * Formats output that is a JSON object on one line, such as that of `--raw`, with one member per line, sorted by name: the order of members
 * is not significant. Returns `undefined` for other output.
 */
function sortedJSON(output: string): string | undefined {
  if (!/^\{".*\}\n?$/.test(output)) return undefined
  try {
    const sorted = JSON.stringify(
      JSON.parse(output),
      (_, value: unknown) =>
        isRecord(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
      1,
    )
    return `${sorted}${output.endsWith('\n') ? '\n' : ''}`
  } catch {
    return undefined
  }
}
