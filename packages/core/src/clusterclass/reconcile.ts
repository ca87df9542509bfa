/** Reconciles a ClusterClass: adopts its templates, reports outdated apiVersions, and publishes its variables. */
import { ClusterClass, ClusterClassConditions, ConditionOrder, isPaused, pausedCondition } from '@capstan/api'
import { ensureOwner, type Outcome, proceed, type ReconcileContext, reconcileObject, requeue, wait } from '@capstan/controller'
import {
  apiVersionOf,
  CustomResourceDefinition,
  isDeleting,
  isReason,
  keyOf,
  keyText,
  type NewCondition,
  type ObjectKey,
  orAbsent,
  ownerReference,
  seconds,
  setConditions,
} from '@capstan/kube'
import { externalKind, externalKindOf } from '../external/contract-version.ts'
import { contractRefOf, type TemplateRef } from '../external/get.ts'
import { reportLegacyConditions } from '../legacy-status.ts'
import { SeeLogs } from '../see-logs.ts'
import { concernedClasses } from './indexes.ts'
import { legacyConditions, OwnedLegacyConditions } from './legacy-status.ts'
import { templateRefsOf } from './template-refs.ts'
import { classVariables, conflictingVariables, discoveringPatches, type DiscoveredVariables } from './variables.ts'

interface Scope {
  readonly clusterClass: ClusterClass
  /** `undefined` until all references were processed. */
  refs?: TemplateRefs
  /** Error that makes VariablesReady False: variables could not be discovered or are invalid, or their definitions conflict. */
  variablesProblem?: Error
}

/** Reconciles one ClusterClass. Safe to call at any time, any number of times. */
export const reconcileClusterClass = (
  key: ObjectKey,
  context: ReconcileContext,
  discovered: DiscoveredVariables,
): Promise<Outcome> =>
  reconcileObject(key, context, {
    kind: ClusterClass,
    related: () => undefined,
    skip(clusterClass) {
      if (isDeleting(clusterClass)) return proceed()
      const awaitsExtensions =
        !isPaused(undefined, clusterClass) && discoveringPatches(clusterClass).length > 0 && !discovered.ready
      return awaitsExtensions ? requeue(seconds(1), 'Runtime Extensions are still being discovered') : undefined
    },
    paused: (clusterClass) => pausedCondition(undefined, clusterClass),
    scope: (clusterClass): Scope => ({ clusterClass }),
    phases: () => [reconcileTemplateRefs, (scope, io) => reconcileVariables(scope, discovered, io)],
    status({ clusterClass, refs, variablesProblem }, { clock }) {
      const computed = [
        refVersionsUpToDateCondition(refs),
        variablesReadyCondition(variablesProblem),
        pausedCondition(undefined, clusterClass),
      ]
      const now = clock.now()
      const { generation } = clusterClass.metadata
      const conditions = setConditions(clusterClass.status?.conditions, computed, { now, generation, order: ConditionOrder })
      clusterClass.status = { ...clusterClass.status, conditions }
      // After an error or with a missing template, the earlier observedGeneration stays, so that Clusters do not use this generation yet.
      if (refs?.errors.length === 0 && !variablesProblem && generation) clusterClass.status.observedGeneration = generation
      reportLegacyConditions(clusterClass, legacyConditions(computed), { now })
      return proceed()
    },
    observesGeneration: false,
    conditions: Object.values(ClusterClassConditions).map(({ type }) => type),
    legacyConditions: OwnedLegacyConditions,
    order: ConditionOrder,
  })

interface TemplateRefs {
  readonly outdated: readonly { readonly ref: TemplateRef; readonly latest: string }[]
  readonly errors: readonly Error[]
}

/** Error for a template that does not exist. No retry is needed: its kind is watched, so its creation triggers a reconcile. */
class MissingTemplate extends Error {
  override readonly name = 'MissingTemplate'
}

/**
 * Makes the class an owner of every template, and finds references whose apiVersion is not the one that core uses: the greatest API version
 * of the newest contract version.
 */
async function reconcileTemplateRefs(scope: Scope, context: ReconcileContext): Promise<Outcome> {
  const { clusterClass } = scope
  const outdated: { ref: TemplateRef; latest: string }[] = []
  const errors: Error[] = []
  // Watched only so that `externalKind` finds CustomResourceDefinitions in the cache: their changes trigger no reconcile.
  await context.watch(CustomResourceDefinition, () => [])
  for (const ref of templateRefsOf(clusterClass.spec)) {
    try {
      await adoptTemplate(clusterClass, ref, context)
      const latest = apiVersionOf((await externalKind(context.cache, contractRefOf(ref))).kind)
      if (latest !== ref.apiVersion) outdated.push({ ref, latest })
    } catch (err) {
      errors.push(err as Error)
    }
  }
  scope.refs = { outdated, errors }
  if (errors.length === 0) return proceed()
  const text = errors.map((err) => err.message).join(', ')
  if (errors.every((err) => err instanceof MissingTemplate)) return wait(text)
  throw new AggregateError(errors, text)
}

async function adoptTemplate(clusterClass: ClusterClass, ref: TemplateRef, context: ReconcileContext): Promise<void> {
  const { cache, client, signal } = context
  const { kind } = await externalKindOf(cache, ref)
  await context.watch(kind, concernedClasses)
  const key = { namespace: clusterClass.metadata.namespace!, name: ref.name }
  const template = cache.peek(kind, key) ?? (await orAbsent(client.get(kind, key, { signal })))
  if (!template) {
    const missing = `${ref.kind}.${kind.group} "${ref.name}" not found`
    throw new MissingTemplate(`failed to get external object for the ClusterClass ${keyText(keyOf(clusterClass))}: ${missing}`)
  }
  try {
    await ensureOwner(context, kind, template, ownerReference(clusterClass, ClusterClass))
  } catch (err) {
    if (!isReason(err, 'NotFound')) throw err
    throw new MissingTemplate(`${ref.kind} ${keyText(key)} was deleted`, { cause: err })
  }
}

/** Returns the RefVersionsUpToDate condition. Pure. */
function refVersionsUpToDateCondition(refs: TemplateRefs | undefined): NewCondition {
  const condition = ClusterClassConditions.RefVersionsUpToDate
  if (!refs || refs.errors.length > 0) return condition.unknown('InternalError', SeeLogs)
  const { outdated } = refs
  if (outdated.length === 0) return condition.true('RefVersionsUpToDate')
  const lines = outdated.map(
    ({ ref, latest }) => `* ${ref.kind} ${ref.name}: current: ${versionOf(ref.apiVersion)}, latest: ${versionOf(latest)}`,
  )
  return condition.false(
    'RefVersionsNotUpToDate',
    ['The following templateRefs are not using the latest apiVersion:', ...lines].join('\n'),
  )
}

const versionOf = (apiVersion: string): string => apiVersion.slice(apiVersion.indexOf('/') + 1)

/**
 * Writes the variables of the class into its status, also if their definitions conflict. When discovery fails or a discovered variable is
 * invalid, the earlier variables stay.
 */
async function reconcileVariables(scope: Scope, discovered: DiscoveredVariables, context: ReconcileContext): Promise<Outcome> {
  try {
    const status = (scope.clusterClass.status ??= {})
    const variables = await classVariables(scope.clusterClass, discovered, context)
    if (variables.length > 0) status.variables = variables
    else delete status.variables
    const conflicts = conflictingVariables(variables)
    if (conflicts.length === 0) return proceed()
    throw new Error(`VariableDiscovery failed: the following variables have conflicting schemas: ${conflicts.join(',')}`)
  } catch (err) {
    scope.variablesProblem = err as Error
    throw err
  }
}

const variablesReadyCondition = (problem: Error | undefined): NewCondition =>
  problem
    ? ClusterClassConditions.VariablesReady.false('VariableDiscoveryFailed', problem.message)
    : ClusterClassConditions.VariablesReady.true('VariablesReady')
