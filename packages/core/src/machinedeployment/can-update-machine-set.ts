/**
 * Determines whether Machines of an old MachineSet can be updated in place instead of being replaced: calls the extension, which must
 * cover all differences. Upstream: machinedeployment_canupdatemachineset.go, v1.14.
 */
import {
  CanUpdateMachineSet,
  type MachineSet,
  onlyHandler,
  TemplateSuffix,
  uncoveredOfMachineSet,
  withoutState,
} from '@capstan/api'
import type { RuntimeClient } from '@capstan/extension'
import { keyOf, keyText, messageOf, type ObjectKey, stableText, type UnknownObject } from '@capstan/kube'
import { ResponseLifetime } from '../response-lifetime.ts'
import { RetryRequests } from '../retry-requests.ts'
import type { ContractRef } from '../external/get.ts'
import { observeExternal } from '../external/observe.ts'
import { externalOf, type Observed, toObserved } from '../external/observed.ts'
import type { MachineDeploymentIO, MachineDeploymentScope } from './scope.ts'
import { machineDeploymentsOfTemplate } from './templates.ts'

interface Decision {
  readonly handler: string
  /**
   * Differences that the extension does not cover, a sentence for each object, or the reason why no extension is called. Empty when the
   * Machines can be updated in place.
   */
  readonly uncovered: readonly string[]
  /** Time of the response or, without a call, of the decision, by `Clock.elapsed`. */
  readonly receivedAt: number
}

/**
 * Caches decisions for 24 hours, so that not every reconcile of a rollout sends the same request to the extension. The key of a decision
 * consists of the handler, the number of retry requests, and the parts of the request on which the response may depend. It does not contain the
 * name of the target set: until that set exists, each reconcile generates another name.
 */
export class InPlaceDecisions {
  readonly runtime: RuntimeClient
  /**
   * Counts how often users requested, by the annotation `retry-hooks` of a Cluster, that its hooks are called again at once. The predicate
   * of the controller's watch on Clusters updates the counts.
   */
  readonly retries = new RetryRequests()
  /** Number of changes of extensions. A decision whose call began before the last change is not cached. */
  changes = 0
  readonly #byDeployment = new Map<string, Map<string, Decision>>()
  /** Deployments whose requests are in progress or have failed. */
  readonly #openRequests = new Map<string, ObjectKey>()

  constructor(runtime: RuntimeClient) {
    this.runtime = runtime
  }

  /**
   * When an extension is added, changed or removed, drops the decisions about its handlers. Then calls `enqueue` for each deployment whose
   * requests are in progress or have failed, because the deployment may wait for this extension.
   */
  whenExtensionsChange(enqueue: (deployment: ObjectKey) => void): void {
    this.runtime.onChanged?.((extensionConfig) => {
      this.changes++
      for (const decisions of this.#byDeployment.values()) {
        for (const [requestKey, { handler }] of decisions)
          if (handler.endsWith(`.${extensionConfig}`)) decisions.delete(requestKey)
      }
      for (const deployment of this.#openRequests.values()) enqueue(deployment)
    })
  }

  /** Records that requests for this deployment begin. Until `end` is called, each change of an extension triggers a retry. */
  begin(deployment: ObjectKey): void {
    this.#openRequests.set(keyText(deployment), deployment)
  }

  /** Records that all requests for this deployment have succeeded. */
  end(deployment: ObjectKey): void {
    this.#openRequests.delete(keyText(deployment))
  }

  /** Returns the cached decision for a request; `undefined` if there is none, or it has expired at the time `now` of `Clock.elapsed`. */
  findDecision(deployment: ObjectKey, requestKey: string, now: number): Decision | undefined {
    const decision = this.#byDeployment.get(keyText(deployment))?.get(requestKey)
    return decision && now < decision.receivedAt + ResponseLifetime ? decision : undefined
  }

  addDecision(deployment: ObjectKey, requestKey: string, decision: Decision): void {
    const key = keyText(deployment)
    const decisions = this.#byDeployment.get(key) ?? new Map<string, Decision>()
    decisions.set(requestKey, decision)
    this.#byDeployment.set(key, decisions)
  }

  /** Drops the decisions for a deployment whose rollout is complete or that was deleted. */
  forget(deployment: ObjectKey): void {
    this.#byDeployment.delete(keyText(deployment))
    this.end(deployment)
  }
}

/**
 * Returns the names of the sets whose Machines can be updated in place to `target`, which may not exist yet. For other sets, an event lists
 * the uncovered differences, once per decision; without a handler, there is no event.
 * @throws Error when several handlers are registered, the call fails and the failure policy of the handler does not ignore the failure, or a
 *   template does not exist: the rollout then waits
 */
export async function findMovableSets(
  sets: readonly MachineSet[],
  target: MachineSet,
  scope: MachineDeploymentScope,
  io: MachineDeploymentIO,
): Promise<ReadonlySet<string>> {
  const movable = new Set<string>()
  const { inPlace, events } = io
  if (!inPlace) return movable
  const { machineDeployment } = scope
  inPlace.begin(keyOf(machineDeployment))
  for (const set of sets) {
    const { name } = set.metadata
    try {
      if (await decideMovable(set, target, scope, { ...io, inPlace })) movable.add(name)
    } catch (err) {
      const message = `failed to determine if MachineSet ${name} can be updated in-place: ${messageOf(err)}`
      events.event(machineDeployment, 'Warning', 'FailedCanUpdateMachineSet', message)
      throw new Error(message, { cause: err })
    }
  }
  inPlace.end(keyOf(machineDeployment))
  return movable
}

type InPlaceIO = MachineDeploymentIO & { readonly inPlace: InPlaceDecisions }

/**
 * Reports whether the Machines of a set can be updated in place. Without a cached decision, calls the handler, unless an in-place update is
 * impossible for any extension, and logs the result; an event lists uncovered differences.
 */
async function decideMovable(
  set: MachineSet,
  target: MachineSet,
  scope: MachineDeploymentScope,
  io: InPlaceIO,
): Promise<boolean> {
  const { machineDeployment } = scope
  const { inPlace, clock, events, log } = io
  const { name } = set.metadata
  const key = keyOf(machineDeployment)
  const handler = onlyHandler(CanUpdateMachineSet, await inPlace.runtime.handlersFor(CanUpdateMachineSet, set))
  // With its feature gate InPlaceUpdates, which is off by default, upstream reads the templates first: a rollout then waits for missing
  // templates of old sets even without extensions.
  if (handler === undefined) return false

  const templates = await templatesOfBoth(set, target, scope, io)
  const retries = inPlace.retries.countFor(scope.cluster)
  const specs = [set, target].map(({ spec }) => spec.template.spec)
  // The key is independent of the order of members, which the server may change. It contains no replicas, which change with every step.
  const requestKey = stableText([name, handler, retries, specs, relevantParts(templates)])
  const earlierDecision = inPlace.findDecision(key, requestKey, clock.elapsed())
  if (earlierDecision) return earlierDecision.uncovered.length === 0

  const { changes } = inPlace
  const uncovered = templates.kind === 'obstacle' ? [templates.text] : await callExtension(handler, set, target, templates, io)
  if (inPlace.changes === changes) inPlace.addDecision(key, requestKey, { handler, uncovered, receivedAt: clock.elapsed() })
  if (uncovered.length === 0) {
    log.info('MachineSet can be updated in-place by extensions', { MachineSet: name, handler })
    return true
  }
  log.info('MachineSet cannot be updated in-place by extensions', { MachineSet: name, handler, reasons: uncovered })
  const text = `Machines of MachineSet "${name}" are replaced, ${handler} cannot update them in place: ${uncovered.join('; ')}`
  events.event(machineDeployment, 'Normal', 'InPlaceUpdateNotPossible', text)
  return false
}

async function callExtension(
  handler: string,
  set: MachineSet,
  target: MachineSet,
  templates: BothTemplates,
  io: InPlaceIO,
): Promise<string[]> {
  const request = {
    current: { machineSet: withoutState(set) as MachineSet, ...templates.current },
    desired: { machineSet: withoutState(target) as MachineSet, ...templates.desired },
  }
  const { runtime } = io.inPlace
  const response = await io.withoutWorker(() => runtime.call(CanUpdateMachineSet, set, handler, request, { signal: io.signal }))
  return uncoveredOfMachineSet(request, response, handler)
}

interface Templates {
  readonly infrastructureMachineTemplate: UnknownObject
  readonly bootstrapConfigTemplate?: UnknownObject
}

interface BothTemplates {
  readonly kind: 'both'
  readonly current: Templates
  readonly desired: Templates
}

/**
 * Returns the templates of the old set and of the deployment, or the reason why an in-place update is impossible for any extension.
 * @throws Error when a template does not exist: as upstream, the rollout then waits
 */
async function templatesOfBoth(
  set: MachineSet,
  target: MachineSet,
  { infrastructureTemplate, bootstrapTemplate }: MachineDeploymentScope,
  io: MachineDeploymentIO,
): Promise<BothTemplates | { readonly kind: 'obstacle'; readonly text: string }> {
  const { infrastructureRef, bootstrap } = set.spec.template.spec
  const current = toTemplates(
    set,
    await readTemplate(set, infrastructureRef, io),
    await readTemplate(set, bootstrap.configRef, io),
  )
  const desired = toTemplates(target, infrastructureTemplate, bootstrapTemplate)
  const obstacle = (text: string) => ({ kind: 'obstacle', text }) as const
  if (!current || !desired) return obstacle('the infrastructure is not created from a template')
  const [from, to] = [current.bootstrapConfigTemplate, desired.bootstrapConfigTemplate]
  if ((from === undefined) !== (to === undefined))
    return obstacle('only one of the MachineSets has a template of bootstrap configs')
  // An in-place update cannot change the kind of an object. Upstream moves the Machine, and then fails to update it for ever.
  const { infrastructureRef: desiredRef, bootstrap: desiredBootstrap } = target.spec.template.spec
  const isSameKind =
    areOfSameKind(infrastructureRef, desiredRef) && areOfSameKind(bootstrap.configRef, desiredBootstrap.configRef)
  if (!isSameKind) return obstacle('the kinds of the templates differ')
  return { kind: 'both', current, desired }
}

const areOfSameKind = (left: ContractRef | undefined, right: ContractRef | undefined): boolean =>
  left?.kind === right?.kind && left?.apiGroup === right?.apiGroup

function toTemplates({ metadata, spec }: MachineSet, infrastructure: Observed, bootstrap: Observed): Templates | undefined {
  const {
    infrastructureRef,
    bootstrap: { configRef },
  } = spec.template.spec
  for (const [ref, { state }] of [
    [infrastructureRef, infrastructure],
    [configRef, bootstrap],
  ] as const) {
    if (ref && (state === 'missing' || state === 'unread'))
      throw new Error(`failed to get ${ref.kind} from MachineSet ${metadata.name}: ${ref.kind} ${ref.name} does not exist`)
  }
  const infrastructureMachineTemplate = externalOf(infrastructure)?.object
  if (!infrastructureMachineTemplate) return undefined
  const config = externalOf(bootstrap)?.object
  return {
    infrastructureMachineTemplate: withoutState(infrastructureMachineTemplate) as unknown as UnknownObject,
    ...(config ? { bootstrapConfigTemplate: withoutState(config) as unknown as UnknownObject } : {}),
  }
}

async function readTemplate(set: MachineSet, ref: ContractRef | undefined, io: MachineDeploymentIO): Promise<Observed> {
  if (!ref?.kind.endsWith(TemplateSuffix)) return { state: 'none' }
  return toObserved(await observeExternal(io, ref, set.metadata.namespace!, machineDeploymentsOfTemplate))
}

/** Returns the parts of the templates on which the decision may depend, without labels and annotations, or the text of the obstacle. */
const relevantParts = (templates: Awaited<ReturnType<typeof templatesOfBoth>>): unknown =>
  templates.kind === 'obstacle'
    ? templates.text
    : [templates.current, templates.desired].flatMap(({ infrastructureMachineTemplate, bootstrapConfigTemplate }) =>
        [infrastructureMachineTemplate, bootstrapConfigTemplate].map(
          (template) => template && [template.apiVersion, template['spec']],
        ),
      )
