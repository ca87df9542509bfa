/** Normalizes errors in logs of managers, so that runs on two API servers can be compared. */
import { readFileSync } from 'node:fs'
import type { Program } from '../processes/programs.ts'

/** An error, without values that differ from run to run, and how often a manager logged it. */
export interface ErrorLine {
  readonly manager: string
  readonly text: string
  readonly count: number
  /** One of the lines, unchanged. */
  readonly sample: string
}

interface Line {
  readonly msg?: string
  readonly err?: string
  readonly controller?: string
  /** Verbosity level; lines about errors have none. */
  readonly v?: number
}

/** Returns the errors in the logs of managers, one entry for each manager and text. */
export function errorLines(programs: readonly Program[]): ErrorLine[] {
  const errors = new Map<string, ErrorLine>()
  for (const { name: manager, log } of programs) {
    for (const sample of readFileSync(log, 'utf8').split('\n')) {
      const text = errorText(sample)
      if (text === undefined) continue
      const id = `${manager} ${text}`
      errors.set(id, { manager, text, sample, count: (errors.get(id)?.count ?? 0) + 1 })
    }
  }
  return [...errors.values()]
}

/**
 * Returns the normalized text of an error; `undefined` for other lines. Lines that are not JSON are errors: panics, and messages of
 * net/http.
 */
export function errorText(line: string): string | undefined {
  if (line.trim() === '') return undefined
  let parsed: Line
  try {
    parsed = JSON.parse(line) as Line
  } catch {
    return normalize(line)
  }
  if (parsed.v !== undefined) return undefined
  const { controller, msg = '', err } = parsed
  return normalize([controller, msg, err].filter((part) => part !== undefined && part !== '').join(': '))
}

/** Errors that a manager may log with only one of the two API servers although the server does not cause them, with the reason. */
const unrelatedErrors: readonly { readonly text: RegExp; readonly reason: string }[] = [
  {
    text: /failed to patch (\w+) .*: failed to patch status conditions: \S+ "\S+" not found/,
    reason: 'the object may be deleted before or after its status is written',
  },
  {
    text: /metadata\.finalizers: Forbidden: no new finalizers can be added if the object is being deleted/,
    reason: 'the object may be deleted before or after its finalizer is written',
  },
  {
    text: /^clustercache: Connect failed: .*(kubeconfig secret: Secret "\S+" not found|ADDRESS: connect: connection refused)$/,
    reason:
      "upstream first connects to a workload cluster when its infrastructure is provisioned, which may be before its kubeconfig or the provider's listener exists",
  },
  {
    text: /connection to the workload cluster is down\]?$|^Error writing event: client disconnected$/,
    reason: 'the provider runs the API servers of workload clusters, and closes their connections when it deletes them',
  },
  {
    text: /^retrying of unary invoker failed$|^kubeadmcontrolplane: .* etcd (client|member|status).*: context deadline exceeded$/,
    reason: 'the provider runs the etcd members, and a member that is being deleted may not respond in time',
  },
]

/** Returns why the API server does not cause an error, given its normalized text; `undefined` when the API server may cause it. */
export const reasonOf = (error: string): string | undefined => unrelatedErrors.find(({ text }) => text.test(error))?.reason

/** Replaces times, uids, loopback addresses, suffixes of generated names, durations, and numbers of at least four digits by placeholders. */
function normalize(text: string): string {
  return text
    .replaceAll(/\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?/g, 'TIME')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UID')
    .replaceAll(/127\.0\.0\.1:\d+/g, 'ADDRESS')
    .replaceAll(/\b([a-z][a-z0-9-]*?)((?:-[bcdfghjklmnpqrstvwxz2456789]{5,10})+)\b/g, '$1-*')
    .replaceAll(/\b\d+(\.\d+)?(ms|µs|s)\b/g, 'DURATION')
    .replaceAll(/\b\d{4,}\b/g, 'N')
}
