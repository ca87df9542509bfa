/** Keeps a ClusterClass usable: owns its templates, tells which apiVersions are old, and publishes its variables. */
import { ClusterClass, ClusterClassConditions, ConditionOrder, isPaused, pausedCondition } from '@capstan/api'
import { commitChanges, type Outcome, proceed, type ReconcileContext, requeue, wait } from '@capstan/controller'
import {
  apiVersionOf,
  CustomResourceDefinition,
  draft,
  ensureOwnerReference,
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
import { SeeLogs } from '../phase-errors.ts'
import { concernedClasses } from './indexes.ts'
import { legacyConditions, OwnedLegacyConditions } from './legacy-status.ts'
import { templateRefsOf } from './template-refs.ts'
import { classVariables, conflictingVariables, discoveringPatches, type DiscoveredVariables } from './variables.ts'

/** Safe to run at any moment, any number of times. */
export async function reconcileClusterClass(
  key: ObjectKey,
  context: ReconcileContext,
  discovered: DiscoveredVariables,
): Promise<Outcome> {
  const { cache, client, clock, signal } = context
  const clusterClass = cache.peek(ClusterClass, key)
  if (!clusterClass || isDeleting(clusterClass)) return proceed()

  const after = draft(clusterClass)
  const status = (after.status ??= {})
  const paused = isPaused(undefined, clusterClass)
  if (!paused && discoveringPatches(clusterClass).length > 0 && !discovered.ready) {
    return requeue(seconds(1), 'Runtime Extensions are still being discovered')
  }
  const computed = [pausedCondition(undefined, clusterClass)]
  let refs: TemplateRefs | undefined
  let undiscovered: Error | undefined
  if (!paused) {
    refs = await settleTemplateRefs(clusterClass, context)
    undiscovered = await settleVariables(clusterClass, status, discovered, context)
    computed.push(refVersionsUpToDate(refs), variablesReady(undiscovered))
    if (refs.errors.length === 0 && !undiscovered) status.observedGeneration = clusterClass.metadata.generation ?? 1
  }
  status.conditions = setConditions(clusterClass.status?.conditions, computed, {
    now: clock.now(),
    generation: clusterClass.metadata.generation,
    order: ConditionOrder,
  })
  reportLegacyConditions(after, legacyConditions(computed), { now: clock.now() })
  const conditions = Object.values(ClusterClassConditions).map(({ type }) => type)
  const options = { conditions, legacyConditions: OwnedLegacyConditions, signal }
  await orAbsent(commitChanges(client, ClusterClass, clusterClass, after, options))
  if (undiscovered) throw undiscovered
  if (!refs || refs.errors.length === 0) return proceed()
  const text = refs.errors.map((err) => err.message).join(', ')
  if (refs.errors.every((err) => err instanceof MissingTemplate)) return wait(text)
  throw new AggregateError(refs.errors, text)
}

interface TemplateRefs {
  readonly outdated: readonly { readonly ref: TemplateRef; readonly latest: string }[]
  readonly errors: readonly Error[]
}

/** The template may still come: its kind is watched, so nobody needs to try again. */
class MissingTemplate extends Error {
  override readonly name = 'MissingTemplate'
}

/** Makes the class an owner of every template, and finds references to versions that are not the newest of the contract. */
async function settleTemplateRefs(clusterClass: ClusterClass, context: ReconcileContext): Promise<TemplateRefs> {
  const outdated: { ref: TemplateRef; latest: string }[] = []
  const errors: Error[] = []
  await context.watch(CustomResourceDefinition, () => [])
  for (const ref of templateRefsOf(clusterClass.spec)) {
    try {
      await ownTemplate(clusterClass, ref, context)
      const latest = apiVersionOf((await externalKind(context.cache, contractRefOf(ref))).kind)
      if (latest !== ref.apiVersion) outdated.push({ ref, latest })
    } catch (err) {
      errors.push(err as Error)
    }
  }
  return { outdated, errors }
}

async function ownTemplate(clusterClass: ClusterClass, ref: TemplateRef, context: ReconcileContext): Promise<void> {
  const { cache, client, signal } = context
  const { kind } = await externalKindOf(cache, ref)
  await context.watch(kind, concernedClasses)
  const key = { namespace: clusterClass.metadata.namespace!, name: ref.name }
  const template = cache.peek(kind, key) ?? (await orAbsent(client.get(kind, key, { signal })))
  if (!template) {
    const missing = `${ref.kind}.${kind.group} "${ref.name}" not found`
    throw new MissingTemplate(`failed to get external object for the ClusterClass ${keyText(keyOf(clusterClass))}: ${missing}`)
  }
  const owned = draft(template)
  if (!ensureOwnerReference(owned, ownerReference(clusterClass, ClusterClass))) return
  const { resourceVersion, ownerReferences } = owned.metadata
  const body = { metadata: { resourceVersion, ownerReferences } }
  try {
    await client.patch(kind, key, { type: 'merge', body }, { signal })
  } catch (err) {
    if (!isReason(err, 'NotFound')) throw err
    throw new MissingTemplate(`${ref.kind} ${keyText(key)} was deleted`, { cause: err })
  }
}

/** Pure: what the references say about the class. */
function refVersionsUpToDate({ outdated, errors }: TemplateRefs): NewCondition {
  const condition = ClusterClassConditions.RefVersionsUpToDate
  if (errors.length > 0) return condition.unknown('InternalError', SeeLogs)
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

/** Puts the variables into the status; those that it had stay when there is something wrong with discovery. */
async function settleVariables(
  clusterClass: ClusterClass,
  status: NonNullable<ClusterClass['status']>,
  discovered: DiscoveredVariables,
  context: ReconcileContext,
): Promise<Error | undefined> {
  try {
    const variables = await classVariables(clusterClass, discovered, context)
    if (variables.length > 0) status.variables = variables
    else delete status.variables
    const conflicts = conflictingVariables(variables)
    if (conflicts.length === 0) return undefined
    return new Error(`VariableDiscovery failed: the following variables have conflicting schemas: ${conflicts.join(',')}`)
  } catch (err) {
    return err as Error
  }
}

const variablesReady = (problem: Error | undefined): NewCondition =>
  problem
    ? ClusterClassConditions.VariablesReady.false('VariableDiscoveryFailed', problem.message)
    : ClusterClassConditions.VariablesReady.true('VariablesReady')
