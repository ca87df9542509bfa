/**
 * Detects extensions whose GeneratePatches responds differently to the same request. A changed response can replace templates and Machines,
 * and the new templates trigger the next reconcile: without a limit, the replacement of Machines might never end. Upstream has no limit.
 */
import { type Clock, minutes } from '@capstan/kube'
import { digest } from '../digest.ts'

/**
 * Maximum number of changed responses that are used in ten minutes. A few changes are normal: while an extension is updated, its old and
 * new versions respond in turn.
 */
const MaxChanges = 5
const Window = minutes(10)

interface Responses {
  /** Hashes of the last request and response. */
  request: string
  response: string
  /** Times of changed responses to the same request, by `Clock.elapsed`. */
  changes: readonly number[]
  isUnstable: boolean
}

/** The responses for the external patches of one Cluster. */
export class PatchResponses {
  readonly #clock: Pick<Clock, 'elapsed'>
  readonly #byPatch = new Map<string, Responses>()

  constructor(clock: Pick<Clock, 'elapsed'>) {
    this.#clock = clock
  }

  /**
   * Records a response of the patch with this name.
   * @throws Error when responses to the same request have changed too often, until two consecutive responses are equal or the request
   * changes
   */
  record(patch: string, request: unknown, response: unknown): void {
    const now = this.#clock.elapsed()
    const [requestHash, responseHash] = [hashOf(request), hashOf(response)]
    const last = this.#byPatch.get(patch)
    if (last?.request !== requestHash) {
      this.#byPatch.set(patch, { request: requestHash, response: responseHash, changes: [], isUnstable: false })
      return
    }
    if (last.response === responseHash) {
      last.isUnstable = false
      return
    }
    last.response = responseHash
    last.changes = [...last.changes, now].filter((time) => now - time < Window).slice(-MaxChanges - 1)
    last.isUnstable ||= last.changes.length > MaxChanges
    if (last.isUnstable)
      throw new Error(
        `the extension responded to the same request with other patches more than ${MaxChanges} times in 10 minutes; the topology is not changed until two responses in sequence are equal, or the request changes`,
      )
  }
}

/** Hash of a value without the references to generated templates, whose names change with each replacement. */
const hashOf = (value: unknown): string =>
  digest(JSON.stringify(value, (key, member: unknown) => (generatedReferences.has(key) ? undefined : member)) ?? '')

/** Fields of templates and built-in variables that contain these references. */
const generatedReferences: ReadonlySet<string> = new Set(['infrastructureRef', 'configRef'])
