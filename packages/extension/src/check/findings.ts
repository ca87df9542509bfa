/** Derives findings about handlers, one sentence each, from their observed responses. Without side effects. */
import { Discovery, hookCatalog, type Hook } from '@capstan/api'
import { appendAll, isRecord } from '@capstan/kube'
import { type Difference, differences, differenceText } from '../test-kit/differences.ts'
import { HookFailed } from '../client/hook-failed.ts'
import { patchedRequest } from '../test-kit/patched-request.ts'
import type { Observation, CallResult } from './probe.ts'

/**
 * - `refused`: core rejects the response of the handler, or the handler does not respond in time
 * - `threw`: the handler throws an error
 * - `differs`: two calls with the same request have different responses, in a field other than message and retry time
 * - `message`: the message of the response changes from call to call
 * - `retry`: the retry time of the response changes from call to call, or the handler proceeds and then blocks
 * - `process`: another process returns a different response
 * - `order`: the response depends on the order of items, variables or object members, or the handler fails for another order
 * - `not-idempotent`: the response changes objects to which the handler's patches are already applied, or the handler fails for them
 * - `mutates`: the handler changes its request
 */
export type FindingKind =
  | 'refused'
  | 'threw'
  | 'differs'
  | 'message'
  | 'retry'
  | 'process'
  | 'order'
  | 'not-idempotent'
  | 'mutates'

export interface Finding {
  readonly kind: FindingKind
  readonly hook: string
  /** Name of the handler on its server; empty for discovery. */
  readonly handler: string
  /** Source of the request that led to the finding, such as `the fixture` or `line 4 of calls.tape`. */
  readonly from: string
  /**
   * Path of the field that differs between two responses, or between the objects after the patches of the responses were applied. Absent
   * for findings that are not differences.
   */
  readonly path?: string
  /** A sentence for users that names the hook and, except for discovery, the handler. */
  readonly message: string
}

/** Returns the findings of one process: at most one of each kind for each handler. */
export const findingsOf = (observations: readonly Observation[]): Finding[] => firstOfEachKind(observations.flatMap(findingsIn))

/**
 * Returns findings from repeating the requests in another process. `causeOf` describes how the environment of that process
 * differs, for example `at another time`.
 */
export const processFindings = (
  observations: readonly Observation[],
  repetitions: readonly Observation[],
  causeOf: (observation: Observation) => string,
): Finding[] =>
  firstOfEachKind(
    observations.flatMap((observation, index) => {
      const repetition = repetitions[index]
      const [difference] = repetition ? responseDifferences(observation, observation.first, repetition.first) : []
      if (!difference) return []
      const text = differenceText(difference, ['in one', 'in the other'])
      return [
        finding(
          observation,
          'process',
          `another process returns a different response (${causeOf(observation)}): ${text}`,
          difference.path,
        ),
      ]
    }),
  )

function findingsIn(observation: Observation): Finding[] {
  const { first, mutated } = observation
  const findings: Finding[] = []
  if ('problem' in first) {
    const [kind, failureText] =
      first.problem === 'Threw' ? (['threw', 'it throws'] as const) : (['refused', 'core rejects its response'] as const)
    findings.push(finding(observation, kind, `${failureText}: ${first.message}`))
  }
  appendAll(findings, findingsOfRepeat(observation), findingsOfOrder(observation), findingsOfPatched(observation))
  if (mutated.length > 0) {
    const fields = mutated.slice(0, 3).join(', ')
    const text = `it modifies its request at ${fields}; the request then no longer contains the values from core`
    findings.push(finding(observation, 'mutates', text))
  }
  return findings
}

function findingsOfRepeat(observation: Observation): Finding[] {
  const { first, second } = observation
  const [firstRetry, secondRetry] = [retryTimeOf(first), retryTimeOf(second)]
  const findings: Finding[] = []
  if (firstRetry === 0 && secondRetry > 0) {
    findings.push(
      finding(
        observation,
        'retry',
        'its first response proceeds, and its second response to the same request blocks',
        'retryAfterSeconds',
      ),
    )
  } else if (firstRetry > 0 && secondRetry > 0 && firstRetry !== secondRetry) {
    const text = `retryAfterSeconds is ${firstRetry}, and ${secondRetry} for the same request: use a constant, so that equal requests get equal responses`
    findings.push(finding(observation, 'retry', text, 'retryAfterSeconds'))
  }
  // If only one of the responses blocks, their messages may differ.
  const onlyOneBlocks = firstRetry > 0 !== secondRetry > 0
  for (const difference of responseDifferences(observation, first, second)) {
    const { path } = difference
    if (path === 'retryAfterSeconds' || (onlyOneBlocks && path === 'message')) continue
    const text = differenceText(difference, ['in the first response', 'in the second'])
    if (path === 'message') {
      findings.push(
        finding(
          observation,
          'message',
          `its message changes from call to call, so that core writes the condition at each call: ${text}`,
          path,
        ),
      )
    } else
      findings.push(finding(observation, 'differs', `two calls with the same request have different responses: ${text}`, path))
  }
  return findings
}

/** Compares the patched documents rather than the patches: different patches with the same result are equal. */
function findingsOfOrder(observation: Observation): Finding[] {
  const { first, second, reordered } = observation
  // Failed calls, and responses that change from call to call, cannot be compared.
  if (!reordered || 'problem' in first || responseDifferences(observation, first, second).length > 0) return []
  if ('problem' in reordered) {
    return [
      finding(
        observation,
        'order',
        `it fails when items, variables and object members are in another order: ${reordered.message}`,
      ),
    ]
  }
  const [outcomeInOrder, outcomeReversed] = [outcome(observation, first), outcome(observation, reordered)]
  if (!outcomeInOrder || !outcomeReversed) return []
  const [difference] = differences(outcomeInOrder, outcomeReversed)
  if (!difference) return []
  const text = differenceText(difference, ['in one order', 'in the other'])
  return [
    finding(
      observation,
      'order',
      `its response depends on the order of items, variables or object members: ${text}`,
      difference.path,
    ),
  ]
}

function findingsOfPatched(observation: Observation): Finding[] {
  const { first, second, patched } = observation
  if (!patched || responseDifferences(observation, first, second).length > 0) return []
  const patchedObservation = { ...observation, request: patched.request }
  const documentsBefore = documents(patchedObservation, patched.request)
  if ('problem' in patched.result) {
    return [finding(observation, 'not-idempotent', `it fails for objects that it has patched: ${patched.result.message}`)]
  }
  const documentsAfter = outcome(patchedObservation, patched.result)
  const [difference] = differences(documentsBefore, documentsAfter)
  if (!difference) return []
  const text = differenceText(difference, ['after its first response', 'after its second response'])
  return [
    finding(
      observation,
      'not-idempotent',
      `its response for objects that it has already patched has further changes: ${text}`,
      difference.path,
    ),
  ]
}

const finding = ({ hook, handler, from }: Observation, kind: FindingKind, text: string, path?: string): Finding => ({
  kind,
  hook,
  handler,
  from,
  ...(path === undefined ? {} : { path }),
  message: `${hook}${handler === '' ? '' : ` of ${handler}`}: ${text} (${from})`,
})

function firstOfEachKind(findings: readonly Finding[]): Finding[] {
  const earlierKeys = new Set<string>()
  return findings.filter(({ kind, hook, handler }) => {
    const key = `${kind} ${hook} ${handler}`
    if (earlierKeys.has(key)) return false
    earlierKeys.add(key)
    return true
  })
}

const retryTimeOf = (result: CallResult): number =>
  'response' in result ? ((result.response as { retryAfterSeconds?: number }).retryAfterSeconds ?? 0) : 0

/** Returns the differences between two responses to the same request. */
const responseDifferences = (observation: Observation, a: CallResult, b: CallResult): Difference[] =>
  differences(comparable(observation, a), comparable(observation, b))

/**
 * Returns the response without `apiVersion` and `kind`, and with templates identified by name rather than uid; for a failed call, the error
 * message.
 */
function comparable({ request }: Observation, result: CallResult): unknown {
  if (!('response' in result)) return { failure: result.message }
  const { apiVersion: _a, kind: _k, items, ...fields } = result.response as { [field: string]: unknown }
  if (!Array.isArray(items)) return fields
  const names = templateNames(request)
  const byTemplate = Object.groupBy(items as { uid: string }[], ({ uid }) => names.get(uid) ?? uid)
  return { ...fields, items: withoutUids(byTemplate) }
}

const withoutUids = (byTemplate: { [name: string]: { uid: string }[] | undefined }): object =>
  Object.fromEntries(
    Object.entries(byTemplate).map(([name, items]) => [name, items!.map((item) => ({ ...item, uid: undefined }))]),
  )

/**
 * Returns the objects of the request after the patches of the response were applied; for hooks without patches, the response; `undefined`
 * if there is no response, or if core would reject its patches.
 */
function outcome(observation: Observation, result: CallResult): unknown {
  if (!('response' in result)) return undefined
  try {
    const hook = hookNamed(observation.hook)
    const patched = patchedRequest(hook, observation.request, result.response)
    return patched === observation.request ? comparable(observation, result) : documents(observation, patched)
  } catch (err) {
    if (err instanceof HookFailed) return undefined
    throw err
  }
}

/** Returns the objects of a request that patches change: the templates by name, or `current`. */
function documents(observation: Observation, request: object): object {
  const { items, current } = request as { items?: { uid: string; object: unknown }[]; current?: object }
  if (!items) return { current }
  const names = templateNames(observation.request)
  return Object.fromEntries(items.map(({ uid, object }) => [names.get(uid) ?? uid, object]))
}

/** Returns names such as `LocalMachineTemplate of MachineDeployment demo-md-0`, by uid. */
function templateNames(request: object): ReadonlyMap<string, string> {
  const { items = [] } = request as { items?: readonly { uid: string; object: unknown; holderReference: unknown }[] }
  return new Map(
    items.flatMap(({ uid, object, holderReference: holder }) =>
      isRecord(object) && isRecord(holder)
        ? [[uid, `${String(object.kind)} of ${String(holder.kind)} ${String(holder.name)}`]]
        : [],
    ),
  )
}

/** Returns a hook of the catalog. Any other hook, such as one of a provider, has no patches, and is treated like Discovery. */
const hookNamed = (name: string): Hook => hookCatalog.find((hook) => hook.name === name) ?? Discovery
