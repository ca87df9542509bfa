/**
 * API for the cases of `npm run interop -- core-twin`. Performs every action on both sides, which are upstream's core and Capstan's, and
 * compares the sides at the end of each step (`settle`, `settleRetries`).
 */
import {
  type Client,
  type Input,
  isRecord,
  isTrue,
  type Kind,
  keyOf,
  type KubeObject,
  messageOf,
  Namespace,
  Secret,
  sleep,
  systemClock,
  stableText,
} from '@capstan/kube'
import { Cluster, ExtensionConfig, Machine, MachineHealthCheck, MachinePool, MachineSet } from '@capstan/api'
import type { ScriptedResponse, RecordedCall } from '../runtime-extension/extension-host.ts'
import { explanationOf, explanationOfResponses, type Explained, type Recordings } from './explained.ts'
import { type Difference, differencesOf, normalText, normalized, normalizedResponse, recordingsOf, textOf } from './normalize.ts'
import { type Behaviour, type Behaviours, type RawResponse, RefreshedAnnotation, type Side } from './side.ts'
import type { Interruption } from './interruption.ts'
import type { Role } from './stub-kinds.ts'
import { everythingReady } from './providers.ts'

/** Waiting times in milliseconds. */
const Wait = {
  /** Sides that have changed nothing for this time are idle, and are compared. */
  idle: 2_000,
  /**
   * Time until a refresh (`#refresh`), if the sides differ or have not reached the expected state. It begins with the step; in `settle`, each
   * change restarts it, in `settleRetries` each refresh. Refreshes are necessary because upstream's core does not watch all objects that it
   * reads, and misses a Node that registers before its Machine is indexed by providerID. A shorter time is not possible, because both cores
   * ignore a new Machine without the condition UpToDate for ten seconds.
   */
  refresh: 10_000,
  /** Time between the refresh of objects and the refresh of objects that aggregate them. */
  stage: 1_500,
  /** If the sides still differ after a refresh: time without changes until the next refresh, or until the sides count as different. */
  different: 6_000,
  /**
   * As `different`, if only Events differ after the last refresh. Upstream's library writes Events one after another, on a busy machine up
   * to 20 s late.
   */
  events: 40_000,
  /** Time between two comparisons in `settleRetries`. */
  repeat: 700,
  /** Maximum wait for one step, except as in `changing`. Long enough for a busy machine. */
  max: 180_000,
  /** Maximum wait in `settle` while the last change of a side is more recent than `different`. */
  changing: 300_000,
}

/** Number of comparisons without a difference that `settleRetries` requires. */
const TimesEqual = 5

/**
 * Maximum number of refreshes in one `settle`; the count begins again when both sides have reached the expected state. More than one is
 * necessary, because upstream may still be connecting to the workload cluster during the first. The last refresh includes both sides.
 */
const MaxRefreshes = 3

/** Kinds in the order of their refresh: objects before the objects that aggregate them. */
const refreshOrder: readonly (readonly Kind[])[] = [[Machine], [MachineSet, MachinePool, MachineHealthCheck], [Cluster]]

const Touched = 'twin.capstan.dev/touched'

export interface StepResult {
  readonly step: string
  readonly differences: readonly Difference[]
}

/** The name of an object, or a function that selects it from the objects of its kind, which are in the order of their last write. */
export type Target<T extends KubeObject> = string | ((objects: readonly T[]) => T | undefined)

/**
 * Whether a side has reached a state. A state that differs between the sides, because Capstan intentionally behaves differently, depends
 * on `side`.
 */
export type State = (objects: readonly KubeObject[], side: Side['name']) => boolean

/** A dry-run request whose responses are compared. */
export interface DryRunRequest {
  /** Description of the request, for the reported differences. */
  readonly what: string
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  /** Name of the existing object. */
  readonly name?: string
  /** The object, or the merge patch. */
  readonly body?: object
}

/** The two sides of one case. */
export class Twin {
  /** Number of dry-run requests whose responses were compared. */
  comparedResponses = 0
  readonly namespace: string
  readonly differingSteps: StepResult[] = []
  /**
   * Steps whose sides reached the expected state, or then became equal, only after the last possible refresh. This refresh includes Capstan's
   * side.
   */
  readonly refreshedSteps: string[] = []
  readonly explained = new Set<Explained>()
  readonly #sides: readonly [Side, Side]
  readonly #reported = new Set<string>()
  /** Times at which steps ended. */
  readonly #ends: number[] = []
  #behaviours: Behaviours = everythingReady
  #registersNodes = false
  #responseDifferences: Difference[] = []
  #touches = 0
  #interruption: Interruption | undefined

  constructor(namespace: string, sides: readonly [Side, Side], interruption?: Interruption) {
    this.namespace = namespace
    this.#sides = sides
    this.#interruption = interruption
  }

  /**
   * Called at the end of a case. Reports the response differences after the last step, and leaves the interruption, so that it does not wait
   * for this case.
   */
  close(): void {
    const differences = this.#responseDifferences
    if (differences.length > 0) this.differingSteps.push({ step: 'responses after the last step', differences })
    this.#interruption?.leave()
    this.#interruption = undefined
  }

  /** Whether the case can still call `whileStopped`. */
  get stopsManagers(): boolean {
    return this.#interruption !== undefined
  }

  /**
   * Runs `act` while no manager runs. Only restart cases can call this, and only once. `act` cannot write core's kinds, because their
   * webhooks are down.
   */
  async whileStopped(act: () => Promise<void>): Promise<void> {
    const interruption = this.#interruption
    if (!interruption)
      throw new Error(
        `the case ${this.namespace} cannot stop the managers: it is not a restart case, or has stopped them already`,
      )
    this.#interruption = undefined
    await interruption.join(act)
  }

  /**
   * Registers an extension with a handler for every hook except Discovery. Each handler allows the next step until `setResponse` changes its
   * response.
   */
  async registerExtension(): Promise<void> {
    await this.#both((side) => side.createExtensionConfig(this.namespace))
    const isDiscovered = (object: KubeObject) =>
      object.kind === 'ExtensionConfig' && isTrue(object as ExtensionConfig, 'Discovered')
    await this.settle('the extension is discovered', (objects) => objects.some(isDiscovered))
  }

  /** Registers the extension of the case a second time. The second ExtensionConfig is not compared. */
  async registerExtensionAgain(): Promise<void> {
    await this.#both((side) => side.createExtensionConfig(this.namespace, `${this.namespace}-again`))
  }

  /** Sets the response of the case's extension to a hook; `undefined` lets the hook proceed. */
  setResponse(hook: string, respond: ((call: RecordedCall) => ScriptedResponse) | undefined): void {
    for (const side of this.#sides) side.extensionFor(this.namespace).setResponse(hook, respond)
  }

  /** Creates the namespace of the case, and starts the stub providers in it. */
  async open(): Promise<void> {
    await this.#both((side) => side.client.create(Namespace, { metadata: { name: this.namespace } }))
    await this.#applyBehaviour()
  }

  /** Creates an object, and compares the error messages and warnings of the responses. */
  async create<T extends KubeObject>(kind: Kind<T>, object: Input<T>): Promise<void> {
    const metadata = { ...object.metadata, namespace: this.namespace }
    const body = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object, metadata }
    await this.#compareResults(`create ${kind.kind} ${object.metadata.name}`, async (side) => {
      const response = await side.request({ method: 'POST', path: `${this.#pathOf(kind)}?${fieldManager}`, body })
      // A stub reports at once, so that both cores find the object in the same state.
      if (response.code < 300) await side.reportFor(kind, response.body as T)
      return resultOf(response)
    })
  }

  /** Applies a JSON merge patch, and compares the error messages and warnings of the responses. */
  async patch<T extends KubeObject>(kind: Kind<T>, target: Target<T>, body: object, subresource?: 'status'): Promise<void> {
    await this.#compareResults(`patch ${kind.kind}`, async (side) => {
      const { name } = this.#keyOn(side, kind, target)
      const path = [this.#pathOf(kind), name, ...(subresource === undefined ? [] : [subresource])].join('/')
      return resultOf(await side.request({ method: 'PATCH', path: `${path}?${fieldManager}`, body }))
    })
  }

  /**
   * Changes an annotation, so that both cores reconcile the object now. Needed because upstream's core does not watch all objects that it
   * reads.
   */
  async touch<T extends KubeObject>(kind: Kind<T>, target: Target<T>): Promise<void> {
    this.#touches++
    await this.patch(kind, target, { metadata: { annotations: { [Touched]: String(this.#touches) } } })
  }

  /** Deletes an object, and compares the error messages of the responses. */
  async delete<T extends KubeObject>(kind: Kind<T>, target: Target<T>): Promise<void> {
    await this.#compareResults(`delete ${kind.kind}`, async (side) => {
      await side.client.delete(kind, this.#keyOn(side, kind, target))
    })
  }

  /** Changes the reports of the stub providers of some roles. */
  async setReports(behaviours: { readonly [R in Role]?: Behaviour }): Promise<void> {
    this.#behaviours = { ...this.#behaviours, ...behaviours }
    await this.#applyBehaviour()
  }

  /**
   * Starts the workload API server of a cluster and creates its kubeconfig Secret. Provisioned stub machines register Nodes there.
   */
  async startWorkload(cluster: string): Promise<void> {
    const key = { namespace: this.namespace, name: cluster }
    await this.#both(async (side) => {
      const kubeconfig = await side.startWorkload(key)
      await side.client.create(Secret, {
        metadata: { ...key, name: `${cluster}-kubeconfig`, labels: { 'cluster.x-k8s.io/cluster-name': cluster } },
        type: 'cluster.x-k8s.io/secret',
        data: { value: Buffer.from(kubeconfig).toString('base64') },
      })
    })
    this.#registersNodes = true
    await this.#applyBehaviour()
  }

  /** Stops the workload API server of a cluster, so that connections to it fail. */
  async stopWorkload(cluster: string): Promise<void> {
    await this.#both((side) => side.stopWorkload({ namespace: this.namespace, name: cluster }))
  }

  /** Runs an action with a client of a cluster's workload API server. */
  async inWorkload(cluster: string, act: (client: Client, side: Side) => Promise<unknown>): Promise<void> {
    await this.#both((side) => act(side.workload({ namespace: this.namespace, name: cluster }), side))
  }

  /** Sends dry-run requests to both sides, one request after another, and compares the whole responses. */
  async compareDryRuns<T extends KubeObject>(kind: Kind<T>, requests: readonly DryRunRequest[]): Promise<void> {
    const collectionPath = this.#pathOf(kind)
    const bodyOf = ({ body }: DryRunRequest) => ({ apiVersion: apiVersionOf(kind), kind: kind.kind, ...body })
    for (const request of requests) {
      const { method, what } = request
      const resourcePath = method === 'POST' ? collectionPath : `${collectionPath}/${request.name}`
      const path = `${resourcePath}?dryRun=All&${fieldManager}`
      const body = { POST: bodyOf(request), PATCH: request.body, DELETE: undefined }[method]
      const [theirs, ours] = await this.#both((side) => side.request({ method, path, ...(body ? { body } : {}) }))
      const object = `${method} ${what}`
      this.comparedResponses++
      const explanation = explanationOfResponses(messageIn(theirs), messageIn(ours), this.namespace)
      if (explanation) this.explained.add(explanation)
      else this.#responseDifferences.push(...differencesOf(normalizedResponse(object, theirs), normalizedResponse(object, ours)))
    }
  }

  /** Runs a custom action on both sides, and compares the results or error messages. */
  async runOnBoth(description: string, act: (client: Client, side: Side) => Promise<unknown>): Promise<void> {
    await this.#compareResults(description, (side) => act(side.client, side))
  }

  /**
   * Waits until both sides are idle, and compares them. If `until` is given, first waits until both sides have reached that state.
   * Without `until`, a side that changes nothing for two seconds counts as idle, even if a later retry would change it.
   */
  async settle(step: string, until?: State): Promise<void> {
    const startedAt = performance.now()
    let refreshes = 0
    let wasReached = false
    let wasRefreshed = false
    const isReached = () => !until || this.#unreached(step, until).length === 0
    for (;;) {
      await sleep(systemClock, 200)
      const now = performance.now()
      const idleFor = now - Math.max(startedAt, ...this.#sides.map((side) => side.observed(this.namespace).changed))
      const limit = idleFor >= Wait.different ? Wait.max : Wait.changing
      const isOver = now - startedAt > limit
      if (!isOver && idleFor < Wait.idle) continue
      if (!isOver && !isReached()) {
        if (refreshes < MaxRefreshes && idleFor >= Wait.refresh) await this.#refresh(++refreshes === MaxRefreshes)
        continue
      }
      if (!wasReached) {
        wasReached = true
        wasRefreshed = refreshes === MaxRefreshes
        refreshes = 0
      }
      const differences = this.#compare()
      if (differences.length > 0 && !isOver) {
        if (idleFor < (refreshes > 0 ? Wait.different : Wait.refresh)) continue
        if (refreshes < MaxRefreshes) {
          await this.#refresh(++refreshes === MaxRefreshes)
          continue
        }
        if (idleFor < Wait.events && differences.every(({ object }) => object === 'Events')) continue
      }
      if ((wasRefreshed || refreshes === MaxRefreshes) && differences.length === 0) this.refreshedSteps.push(step)
      const unreached = until ? this.#unreached(step, until) : []
      if (unreached.length > 0) differences.push(...unreached)
      else if (isOver)
        differences.push({ object: step, path: 'is idle', theirs: undefined, ours: `not within ${limit / 1000} s` })
      this.#end(step, differences)
      return
    }
  }

  /**
   * Waits until both sides were equal several times. Use it for states in which a side never becomes idle, such as retries that
   * create and delete an object. Detects permanent differences, and may miss temporary differences.
   */
  async settleRetries(step: string, until: State): Promise<void> {
    const startedAt = performance.now()
    let refreshedAt = startedAt
    for (let equal = 0; ; ) {
      await sleep(systemClock, Wait.repeat)
      const unreached = this.#unreached(step, until)
      const differences = unreached.length > 0 ? unreached : this.#compare()
      const now = performance.now()
      if (differences.length === 0 && ++equal < TimesEqual) continue
      if (differences.length > 0 && now - startedAt < Wait.max) {
        if (now - refreshedAt < Wait.refresh) continue
        await this.#refresh()
        refreshedAt = performance.now()
        continue
      }
      this.#end(step, differences)
      return
    }
  }

  #end(step: string, differences: readonly Difference[]): void {
    if (differences.length > 0) this.differingSteps.push({ step, differences })
    for (const difference of differences) this.#reported.add(textOf(difference))
    this.#responseDifferences = []
    this.#ends.push(Date.now())
  }

  /**
   * Makes upstream's core reconcile all objects of the kinds in `refreshOrder`, by adding and removing an annotation. Most refreshes
   * leave out Capstan's core, so that the suite detects an object that Capstan should watch, but does not. The last refresh in
   * `settle` includes Capstan's core, because neither core notices some changes, such as those of the Machines of a paused MachineSet. The
   * suite prints `refreshedSteps`.
   */
  async #refresh(onBothSides = false): Promise<void> {
    const [upstream] = this.#sides
    for (const kinds of refreshOrder) {
      const objects = (onBothSides ? this.#sides : [upstream]).flatMap((side) =>
        kinds.flatMap((kind) => side.objects(this.namespace, kind).map((object) => ({ side, kind, key: keyOf(object) }))),
      )
      for (const { side, kind, key } of objects) {
        for (const value of ['refresh', null]) {
          const body = { metadata: { annotations: { [RefreshedAnnotation]: value } } }
          // An object may have been deleted in the meantime.
          await side.client.patch(kind, key, { type: 'merge', body }).catch(() => undefined)
        }
      }
      if (objects.length > 0) await sleep(systemClock, Wait.stage)
    }
  }

  /** Returns the unexplained differences that no earlier step has reported. */
  #compare(): Difference[] {
    const [theirs, ours] = this.#sides.map((side) => normalized(side.observed(this.namespace))) as [never, never]
    return [...this.#responseDifferences, ...differencesOf(theirs, ours)].filter((difference) => {
      const explanation = explanationOf(difference, this.namespace, this.#recordingsOf(difference))
      if (explanation) this.explained.add(explanation)
      return !explanation && !this.#reported.has(textOf(difference))
    })
  }

  /**
   * Returns how often the Event of a difference was recorded on the side that has the Event, and whether the last recording was in the step
   * that created the object.
   */
  #recordingsOf({ object, path, theirs }: Difference): Recordings {
    if (object !== 'Events') return { count: 0, isOfCreation: false }
    const observed = this.#sides[theirs === undefined ? 1 : 0].observed(this.namespace)
    const { count, last } = recordingsOf(observed, path)
    // The Event of the object's creation.
    const creation = path.replace(' TopologyUpdate ', ' TopologyCreate ').replace(': Updated ', ': Created ')
    const { first } = recordingsOf(observed, creation)
    // Times of Events are truncated to seconds, so the previous step may end up to a second after `first`. The comparisons
    // assume that nothing is recorded in the last two seconds of a step.
    const endOfCreation = this.#ends.find((end) => end >= first + 1000)
    return { count, isOfCreation: Number.isFinite(first) && (endOfCreation === undefined || last + 1000 <= endOfCreation) }
  }

  /** Returns a difference unless both sides have reached the state `until`. */
  #unreached(step: string, until: State): Difference[] {
    const [theirs, ours] = this.#sides.map((side) => {
      const objects = [...side.observed(this.namespace).objects.values()].map(({ object }) => object)
      return until(objects, side.name)
    })
    return theirs && ours ? [] : [{ object: step, path: 'is reached', theirs: String(theirs), ours: String(ours) }]
  }

  #keyOn<T extends KubeObject>(side: Side, kind: Kind<T>, target: Target<T>) {
    if (typeof target === 'string') return { namespace: this.namespace, name: target }
    const objects = side
      .objects(this.namespace, kind)
      .sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
    const object = target(objects)
    if (!object) throw new Error(`no ${kind.kind} matches the target`)
    return keyOf(object)
  }

  async #applyBehaviour(): Promise<void> {
    const behaviour = { byRole: this.#behaviours, registersNodes: this.#registersNodes }
    await this.#both((side) => side.setBehaviour(this.namespace, behaviour))
  }

  async #both<T>(act: (side: Side) => Promise<T>): Promise<[T, T]> {
    return await Promise.all([act(this.#sides[0]), act(this.#sides[1])])
  }

  /** Returns the path of the kind's objects in the namespace of the case. */
  #pathOf({ group, version, plural, scope }: Kind): string {
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
    return `${root}${scope === 'Namespaced' ? `/namespaces/${this.namespace}` : ''}/${plural}`
  }

  /** Performs an action on both sides, and compares the results or error messages. */
  async #compareResults(description: string, act: (side: Side) => Promise<unknown>): Promise<void> {
    const [theirs, ours] = await this.#both((side) =>
      act(side).then(
        (result) => {
          if (result === undefined) return 'done'
          return normalText(typeof result === 'string' ? result : stableText(result))
        },
        (err) => normalText(messageOf(err)),
      ),
    )
    if (theirs !== ours) this.#responseDifferences.push({ object: description, path: 'response', theirs, ours })
  }
}

const fieldManager = 'fieldManager=twin'

const apiVersionOf = ({ group, version }: Kind): string => (group === '' ? version : `${group}/${version}`)

/** Returns the error message of a response, or `done`, and its warnings as text. */
const resultOf = (response: RawResponse): string =>
  [response.code < 300 ? 'done' : messageIn(response), ...response.warnings].join('\n')

const messageIn = ({ body }: RawResponse): string => (isRecord(body) && typeof body.message === 'string' ? body.message : '')

/** A case of the suite. */
export type Case = (twin: Twin) => Promise<void>
/** Cases by name. The name of a case is also its namespace. */
export type Cases = { readonly [name: string]: Case }
