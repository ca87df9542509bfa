/**
 * Whether the Machines of an old set can become those of the current one without being replaced: the extension is asked, and must
 * cover all that differs. Upstream: machinedeployment_canupdatemachineset.go, v1.14.
 */
import {
  CanUpdateMachineSet,
  type MachineSet,
  onlyHandler,
  RetryHooksAnnotation,
  TemplateSuffix,
  uncoveredOfMachineSet,
  withoutState,
} from '@capstan/api'
import type { RuntimeClient } from '@capstan/extension'
import { hours, keyOf, keyText, messageOf, type ObjectKey, stableText, type UnknownObject } from '@capstan/kube'
import type { ContractRef } from '../external/get.ts'
import { observeExternal } from '../external/observe.ts'
import { found, type Observed, observed } from '../external/observed.ts'
import type { MachineDeploymentIO, MachineDeploymentScope } from './scope.ts'

interface Answer {
  readonly handler: string
  /** What nobody covers, a sentence for each object; none when the Machines can be updated in place. */
  readonly uncovered: readonly string[]
  /** When, in milliseconds. */
  readonly given: number
}

/** How long an answer holds. Upstream has the same, and asks again only then. */
const MemoryOfAnswers = hours(24)

/**
 * Answers of extensions, so that each question is asked once in a rollout. A question that reads otherwise is another one; what the
 * current set will be called is no part of it, since a pass that did not come to make it draws another name next time.
 */
export class InPlaceDecisions {
  readonly runtime: RuntimeClient
  readonly #byDeployment = new Map<string, Map<string, Answer>>()
  /** Deployments for which not all is answered yet. */
  readonly #asking = new Map<string, ObjectKey>()

  constructor(runtime: RuntimeClient) {
    this.runtime = runtime
  }

  /**
   * Whenever an extension has changed or is gone, forgets what it answered, and calls `again` for each deployment that waits for an
   * answer: any extension may be what was missing.
   */
  whenExtensionsChange(again: (deployment: ObjectKey) => void): void {
    this.runtime.onChanged?.((extensionConfig) => {
      for (const answers of this.#byDeployment.values()) {
        for (const [question, { handler }] of answers) if (handler.endsWith(`.${extensionConfig}`)) answers.delete(question)
      }
      for (const deployment of this.#asking.values()) again(deployment)
    })
  }

  /** It is being decided for this deployment; if that fails, the next extension that changes may help. */
  begin(deployment: ObjectKey): void {
    this.#asking.set(keyText(deployment), deployment)
  }

  end(deployment: ObjectKey): void {
    this.#asking.delete(keyText(deployment))
  }

  recall(deployment: ObjectKey, question: string, now: number): Answer | undefined {
    const known = this.#byDeployment.get(keyText(deployment))?.get(question)
    return known && now < known.given + MemoryOfAnswers ? known : undefined
  }

  remember(deployment: ObjectKey, question: string, answer: Answer): void {
    const key = keyText(deployment)
    const known = this.#byDeployment.get(key) ?? new Map<string, Answer>()
    known.set(question, answer)
    this.#byDeployment.set(key, known)
  }

  /** The rollout is over, or the deployment gone. */
  forget(deployment: ObjectKey): void {
    this.#byDeployment.delete(keyText(deployment))
    this.end(deployment)
  }
}

/**
 * Names of those sets whose Machines can be updated in place, when they move to `target`, which may not exist yet. What the others
 * lack is told in an event, once per question.
 *
 * @throws Error when several handlers are registered, or the one fails: the rollout waits
 */
export async function movableSets(
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
      if (await isMovable(set, target, scope, { ...io, inPlace })) movable.add(name)
    } catch (err) {
      const message = `failed to determine if MachineSet ${name} can be updated in-place: ${messageOf(err)}`
      events.event(machineDeployment, 'Warning', 'FailedCanUpdateMachineSet', message)
      throw new Error(message, { cause: err })
    }
  }
  inPlace.end(keyOf(machineDeployment))
  return movable
}

type AskingIO = MachineDeploymentIO & { readonly inPlace: InPlaceDecisions }

async function isMovable(set: MachineSet, target: MachineSet, scope: MachineDeploymentScope, io: AskingIO): Promise<boolean> {
  const { machineDeployment } = scope
  const { inPlace, clock, events, log } = io
  const { name } = set.metadata
  const key = keyOf(machineDeployment)
  const handler = onlyHandler(CanUpdateMachineSet, await inPlace.runtime.handlersFor(CanUpdateMachineSet, set))
  // Upstream reads the templates first, so that even without any extension a rollout waits for templates of old sets.
  if (handler === undefined) return false

  const templates = await templatesOfBoth(set, scope, io)
  const retried = scope.cluster.metadata.annotations?.[RetryHooksAnnotation]
  const specs = [set, target].map(({ spec }) => spec.template.spec)
  // A server gives back the members of an object in an order of its own.
  const question = stableText([name, handler, retried, specs, whatCounts(templates)])
  const known = inPlace.recall(key, question, clock.now())
  if (known) return known.uncovered.length === 0

  const uncovered = templates.kind === 'obstacle' ? [templates.text] : await ask(handler, set, target, templates, io)
  inPlace.remember(key, question, { handler, uncovered, given: clock.now() })
  if (uncovered.length === 0) {
    log.info('MachineSet can be updated in-place by extensions', { MachineSet: name, handler })
    return true
  }
  log.info('MachineSet cannot be updated in-place by extensions', { MachineSet: name, handler, reasons: uncovered })
  const text = `Machines of MachineSet "${name}" are replaced, ${handler} cannot update them in place: ${uncovered.join('; ')}`
  events.event(machineDeployment, 'Normal', 'InPlaceUpdateNotPossible', text)
  return false
}

async function ask(
  handler: string,
  set: MachineSet,
  target: MachineSet,
  templates: BothTemplates,
  io: AskingIO,
): Promise<string[]> {
  const question = {
    current: { machineSet: withoutState(set) as MachineSet, ...templates.current },
    desired: { machineSet: withoutState(target) as MachineSet, ...templates.desired },
  }
  const answer = await io.inPlace.runtime.call(CanUpdateMachineSet, set, handler, question, { signal: io.signal })
  return uncoveredOfMachineSet(question, answer, handler)
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

/** The templates of the old set and of the deployment, or why there is nothing to ask about. */
async function templatesOfBoth(
  set: MachineSet,
  { infrastructureTemplate, bootstrapTemplate }: MachineDeploymentScope,
  io: MachineDeploymentIO,
): Promise<BothTemplates | { readonly kind: 'obstacle'; readonly text: string }> {
  const { infrastructureRef, bootstrap } = set.spec.template.spec
  const current = templates(await readTemplate(set, infrastructureRef, io), await readTemplate(set, bootstrap.configRef, io))
  const desired = templates(infrastructureTemplate, bootstrapTemplate)
  const obstacle = (text: string) => ({ kind: 'obstacle', text }) as const
  if (!current) return obstacle('a template of the MachineSet does not exist')
  if (!desired) return obstacle('a template of the MachineDeployment does not exist')
  const [from, to] = [current.bootstrapConfigTemplate, desired.bootstrapConfigTemplate]
  if ((from === undefined) !== (to === undefined))
    return obstacle('only one of the MachineSets has a template of bootstrap configs')
  // An object cannot become one of another kind, whatever an extension says.
  if (from?.kind !== to?.kind || current.infrastructureMachineTemplate.kind !== desired.infrastructureMachineTemplate.kind) {
    return obstacle('the kinds of the templates differ')
  }
  return { kind: 'both', current, desired }
}

function templates(infrastructure: Observed, bootstrap: Observed): Templates | undefined {
  const infrastructureMachineTemplate = found(infrastructure)?.object
  if (!infrastructureMachineTemplate || bootstrap.state === 'missing' || bootstrap.state === 'unread') return undefined
  const config = found(bootstrap)?.object
  return {
    infrastructureMachineTemplate: withoutState(infrastructureMachineTemplate) as unknown as UnknownObject,
    ...(config ? { bootstrapConfigTemplate: withoutState(config) as unknown as UnknownObject } : {}),
  }
}

async function readTemplate(set: MachineSet, ref: ContractRef | undefined, io: MachineDeploymentIO): Promise<Observed> {
  if (!ref?.kind.endsWith(TemplateSuffix)) return { state: 'none' }
  return observed(await observeExternal(io, ref, set.metadata.namespace!, () => []))
}

/** What may change an answer. Labels and annotations may not, nor may replicas, which change with every step. */
const whatCounts = (of: Awaited<ReturnType<typeof templatesOfBoth>>): unknown =>
  of.kind === 'obstacle'
    ? of.text
    : [of.current, of.desired].flatMap(({ infrastructureMachineTemplate, bootstrapConfigTemplate }) =>
        [infrastructureMachineTemplate, bootstrapConfigTemplate].map((one) => one && [one.apiVersion, one['spec']]),
      )
