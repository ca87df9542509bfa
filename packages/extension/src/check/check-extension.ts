/** Checks that an extension is deterministic and idempotent, as core requires. Upstream requires both and checks neither. */
import { type Clock, systemClock } from '@capstan/kube'
import type { Extension } from '../author/define-extension.ts'
import { type Finding, type FindingKind, findingsOf, processFindings } from './findings.ts'
import { probeInOtherProcess, type EnvironmentChanges } from './other-process.ts'
import { type CheckRequest, type Observation, probe, type ProbeResults } from './probe.ts'

export interface CheckOptions {
  /** Settings that are added to the fixtures, which are the generated example requests. Default: none. */
  readonly settings?: { readonly [name: string]: string }
  /** Requests in addition to the fixture of each hook, such as those of a tape (recorded hook calls). */
  readonly requests?: readonly CheckRequest[]
  /** Ends the processes of `checkModule`; `checkExtension` ignores it. */
  readonly signal?: AbortSignal
}

export interface CheckReport {
  readonly findings: readonly Finding[]
  /** Number of handlers that were called. */
  readonly handlers: number
  /** Number of requests, including one of Discovery. Counts a request for each handler that it was sent to, but not its variants. */
  readonly requests: number
  readonly processes: number
  /** Handlers without a request, as `<hook> of <name>`. */
  readonly uncalled: readonly string[]
}

/**
 * Calls Discovery and the handlers in this process, for each request:
 * - twice with the request
 * - once with items, variables and object members in reverse order, if the request has items or variables
 * - once with the patches of the first response applied to the objects of the request, if the hook has patches and the response is
 *   successful
 *
 * The calls are milliseconds apart: only `checkModule` finds responses that depend on the minute, the day, the process or the locale.
 */
export async function checkExtension(
  extension: Extension,
  { clock = systemClock, ...options }: CheckOptions & { readonly clock?: Clock } = {},
): Promise<CheckReport> {
  const probed = await probe(extension, { ...options, clock })
  return reportOf(probed, findingsOf(probed.observations), 1)
}

/** Differences between the environments of the second and the first process. */
const changes = {
  // Changes day, hour, minute and second.
  time: { shiftMs: ((400 * 24 + 7) * 3600 + 13 * 60 + 29) * 1000 + 123 },
  place: { env: { TZ: 'Pacific/Chatham', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' } },
  seed: { flags: ['--hash-seed=20260101'] },
} satisfies { readonly [what: string]: EnvironmentChanges }

/** Differences of the environment, one at a time, to find the cause of a finding. */
const singleChanges: readonly (readonly [why: string, EnvironmentChanges])[] = [
  ['without any change: it depends on randomness or on the process', {}],
  ['at another time', changes.time],
  ['in another time zone and language', changes.place],
  ['with another hash seed', changes.seed],
]

/**
 * Checks the extension of a module as `checkExtension` does, but in a separate process. Repeats the requests in a second
 * process with a different time, time zone, language and hash seed. If responses differ between the processes, but not from call to call,
 * repeats the requests in more processes to find the cause.
 *
 * @throws Error if the module does not load or has no extension, or if a process ends early; an AbortError if the signal aborts
 */
export async function checkModule(module: URL, options: CheckOptions = {}): Promise<CheckReport> {
  const [first, second] = await Promise.all([
    probeInOtherProcess(module, options, {}),
    probeInOtherProcess(module, options, { ...changes.time, ...changes.place, ...changes.seed }),
  ])
  const findings = findingsOf(first.observations)
  const unreportedFindings = (causeOf: (observation: Observation) => string) =>
    processFindings(first.observations, second.observations, causeOf).filter((finding) => !isReported(findings, finding))
  if (unreportedFindings(() => '').length === 0) return reportOf(first, findings, 2)
  const causes = await causesOf(module, options, first.observations)
  const cause = (observation: Observation) =>
    causes.get(nameOf(observation)) ?? 'at another time, in another time zone and language, with another hash seed'
  return reportOf(first, [...findings, ...unreportedFindings(cause)], 2 + singleChanges.length)
}

const nameOf = ({ hook, handler }: Pick<Finding, 'hook' | 'handler'>): string => `${hook} ${handler}`

/** Whether the finding is reported already: fields that change from call to call also change from process to process. */
const isReported = (findings: readonly Finding[], finding: Finding): boolean =>
  findings.some((earlier) => nameOf(earlier) === nameOf(finding) && fromCallToCall.has(earlier.kind))

const fromCallToCall: ReadonlySet<FindingKind> = new Set(['differs', 'message', 'retry'])

/** Returns, by hook and handler, the first of `singleChanges` with which the response differs from `baseline`. */
async function causesOf(module: URL, options: CheckOptions, baseline: readonly Observation[]): Promise<Map<string, string>> {
  const causes = new Map<string, string>()
  const probes = singleChanges.map(
    async ([cause, changed]) => [cause, await probeInOtherProcess(module, options, changed)] as const,
  )
  for (const [cause, { observations }] of await Promise.all(probes)) {
    for (const finding of processFindings(baseline, observations, () => cause)) {
      if (!causes.has(nameOf(finding))) causes.set(nameOf(finding), cause)
    }
  }
  return causes
}

const reportOf = ({ observations, uncalled }: ProbeResults, findings: readonly Finding[], processes: number): CheckReport => ({
  findings,
  uncalled,
  handlers: new Set(observations.map(({ handler }) => handler).filter(Boolean)).size,
  requests: observations.length,
  processes,
})

/** Formats the report: one line for each finding and for each handler that was not called, then the number of requests and the result. */
export function checkText({ findings, handlers, requests, processes, uncalled }: CheckReport): string {
  const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? '' : 's'}`
  const processText = `in ${processes === 1 ? 'one process' : `${processes} processes`}`
  const calls = `${count(handlers, 'handler')} called with ${requests === 1 ? 'one request' : `${requests} requests`} ${processText}`
  const result =
    findings.length === 0 ? 'deterministic and idempotent, as far as these calls show' : count(findings.length, 'finding')
  const missing = uncalled.map(
    (name) => `${name}: not called, because no valid request can be derived from its declaration: pass requests`,
  )
  return [...findings.map(({ message }) => message), ...missing, `${calls}: ${result}`].join('\n')
}
