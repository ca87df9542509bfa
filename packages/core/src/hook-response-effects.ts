/** Describes how core handles the response of a hook, for authors who test an extension before core calls it. Pure. */
import type { Hook, RequestOf, ResponseOf } from '@capstan/api'
import {
  CanUpdateMachine,
  CanUpdateMachineSet,
  createCatalog,
  DiscoverVariables,
  Discovery,
  GeneratePatches,
  GenerateUpgradePlan,
  hookCatalog,
  uncoveredOfMachine,
  uncoveredOfMachineSet,
} from '@capstan/api'
import { assertSuccess, checkDiscovery, HookFailed, type HookProblem } from '@capstan/extension'
import type { Json, JsonPatchOperation } from '@capstan/kube'
import { diffJson, messageOf, writeJSON } from '@capstan/kube'
import { variableDefinitionErrors } from './clusterclass/variable-rules.ts'
import { applyResponseItem, itemText } from './topology/patches/external-patch.ts'
import { upgradePlan } from './topology/upgrade/upgrade-plan.ts'

/** How core handles a response. */
export type HookResponseEffects =
  | {
      readonly kind: 'rejected'
      /** Error of core, without prefixes such as the name of the patch or ExtensionConfig. */
      readonly error: string
      /** Problem code of the runtime client; absent when the error comes from a check of core. */
      readonly problem?: HookProblem
    }
  | {
      readonly kind: 'accepted'
      /** Consequences of the response, each a sentence without its subject, core: `waits, and calls again after 30 s`. */
      readonly effects: readonly string[]
    }

/**
 * Returns how core handles a response. `handler` is the handler name for messages, such as `gate.sample`. The response must be one that the
 * runtime client can decode: it rejects other responses earlier. `hooks` are the hooks that extensions may handle.
 */
export function hookResponseEffects(
  hook: Hook,
  handler: string,
  request: object,
  response: object,
  hooks: readonly Hook[] = hookCatalog,
): HookResponseEffects {
  try {
    assertSuccess(response, `failed to call extension handler ${JSON.stringify(handler)}`)
    return { kind: 'accepted', effects: effectsOf(hook, handler, request, response, hooks) }
  } catch (err) {
    return { kind: 'rejected', error: messageOf(err), ...(err instanceof HookFailed ? { problem: err.problem } : {}) }
  }
}

function effectsOf(hook: Hook, handler: string, request: object, response: object, hooks: readonly Hook[]): readonly string[] {
  if (hook === Discovery) return discoveryEffects(response as ResponseOf<typeof Discovery>, hooks)
  if (hook.blocking) return blockingEffects(hook, response)
  const describeEffects = effectsByHook.get(hook)
  return describeEffects ? describeEffects(request, response, handler) : ['continues']
}

function blockingEffects({ name }: Hook, response: { retryAfterSeconds?: number; message?: string }): string[] {
  const { retryAfterSeconds = 0, message = '' } = response
  if (retryAfterSeconds === 0) return ['continues']
  return [`waits, and calls again after ${retryAfterSeconds} s`, `shows ${JSON.stringify(name + (message && `: ${message}`))}`]
}

type Effects<H extends Hook> = (request: RequestOf<H>, response: ResponseOf<H>, handler: string) => string[]

function discoveryEffects({ handlers = [] }: ResponseOf<typeof Discovery>, hooks: readonly Hook[]): string[] {
  checkDiscovery('', handlers, createCatalog(hooks))
  if (handlers.length === 0) return ['registers nothing: the response has no handlers']
  return handlers.map(({ name, requestHook }) => `registers ${name} for ${requestHook.hook}`)
}

const patchEffects: Effects<typeof GeneratePatches> = ({ items }, { items: patches = [] }) => {
  const templates = items.map(({ uid, holderReference, object }) => ({ uid, holder: holderReference, document: object }))
  const rejections = patches.flatMap((patch) => applyResponseItem(templates, patch))
  const changes = templates.flatMap((template, index) => {
    const operations = diffJson(items[index]!.object as unknown as Json, template.document as unknown as Json)
    return operations.length === 0 ? [] : [`${itemText(template)}: ${operations.map(operationText).join(', ')}`]
  })
  return [
    `changes ${changes.length} of ${items.length} templates`,
    ...changes.map((change) => `changes ${change}`),
    ...rejections.map((rejection) => `leaves out: ${rejection}`),
  ]
}

const operationText = (operation: JsonPatchOperation): string =>
  [operation.op, operation.path, ...('value' in operation ? [writeJSON(operation.value)] : [])].join(' ')

const upgradePlanEffects: Effects<typeof GenerateUpgradePlan> = (
  request,
  { controlPlaneUpgrades = [], workersUpgrades = [] },
) => {
  const versions = (steps: readonly { readonly version: string }[]) => steps.map(({ version }) => version)
  const { fromControlPlaneKubernetesVersion, fromWorkersKubernetesVersion, toKubernetesVersion } = request
  const plan = upgradePlan({
    desired: toKubernetesVersion,
    controlPlane: fromControlPlaneKubernetesVersion,
    workers: fromWorkersKubernetesVersion === undefined ? [] : [fromWorkersKubernetesVersion],
    known: [],
    extensionPlan: { controlPlane: versions(controlPlaneUpgrades), workers: versions(workersUpgrades) },
  })
  return [
    `takes the control plane to ${plan.controlPlane.join(', ')}`,
    ...(plan.workers.length === 0 ? [] : [`takes the workers to ${plan.workers.join(', ')}`]),
  ]
}

const variableEffects: Effects<typeof DiscoverVariables> = (_, { variables = [] }) => {
  const errors = variableDefinitionErrors(variables.map((variable) => ({ required: false, ...variable })))
  if (errors.length > 0) throw new Error(errors.map(({ field, text }) => `${field}: ${text}`).join(', '))
  return [variables.length === 0 ? 'defines no variables' : `defines ${variables.map(({ name }) => name).join(', ')}`]
}

const inPlaceEffects = (uncovered: readonly string[]): string[] =>
  uncovered.length === 0 ? ['updates in place'] : uncovered.map((difference) => `replaces the machine: ${difference}`)

const forHook = <H extends Hook>(hook: H, describeEffects: Effects<H>): [Hook, Effects<Hook>] => [
  hook,
  describeEffects as Effects<Hook>,
]

/** By hook, the function that describes the effects of a response. Responses of other hooks, except Discovery, can at most block. */
const effectsByHook: ReadonlyMap<Hook, Effects<Hook>> = new Map([
  forHook(GeneratePatches, patchEffects),
  forHook(GenerateUpgradePlan, upgradePlanEffects),
  forHook(DiscoverVariables, variableEffects),
  forHook(CanUpdateMachine, (request, response, handler) => inPlaceEffects(uncoveredOfMachine(request, response, handler))),
  forHook(CanUpdateMachineSet, (request, response, handler) => inPlaceEffects(uncoveredOfMachineSet(request, response, handler))),
])
