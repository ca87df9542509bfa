/**
 * Detects an extension whose GeneratePatches responds differently to the same request. Each changed response replaces templates and
 * Machines, and the replaced templates cause the next reconcile: without a limit Machines would be replaced without end, as with upstream's
 * core.
 */
import { type Clock, minutes } from '@capstan/kube'
import { digest } from './digest.ts'

/**
 * Maximum number of changed responses that are used in ten minutes. Some are expected: extensions are updated, and run in two versions
 * during an update.
 */
const MaxChanges = 5
const Window = minutes(10)

interface Responses {
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
   * @throws Error when responses to the same request change too often, until two responses in sequence are equal
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
        `the extension responded to the same request with other patches more than ${MaxChanges} times in 10 minutes; nothing is changed until two responses in sequence are equal`,
      )
  }
}

/** Hash of a value, without the names of generated templates: these differ after each replacement. */
const hashOf = (value: unknown): string =>
  digest(JSON.stringify(value, (key, member: unknown) => (generatedReferences.has(key) ? undefined : member)) ?? '')

/** Fields of the built-in variables. */
const generatedReferences: ReadonlySet<string> = new Set(['infrastructureRef', 'configRef'])
