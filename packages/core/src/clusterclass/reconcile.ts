/** Keeps a ClusterClass usable: owns its templates, tells which apiVersions are old, and publishes its variables. */
import {
  ClusterClass,
  ClusterClassConditions,
  ConditionOrder,
  isPaused,
  pausedCondition,
  VariableDefinitionFromInline,
} from '@capstan/api'
import { commitChanges, type Outcome, proceed, type ReconcileContext, wait } from '@capstan/controller'
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
  setConditions,
} from '@capstan/kube'
import { externalKind, externalKindOf } from '../external/contract-version.ts'
import { contractRefOf, type TemplateRef } from '../external/get.ts'
import { reportLegacyConditions } from '../legacy-status.ts'
import { concernedClasses } from './indexes.ts'
import { legacyConditions, OwnedLegacyConditions } from './legacy-status.ts'
import { templateRefsOf } from './template-refs.ts'

const InternalError = 'Please check controller logs for errors'

/** Safe to run at any moment, any number of times. */
export async function reconcileClusterClass(key: ObjectKey, context: ReconcileContext): Promise<Outcome> {
  const { cache, client, clock, signal } = context
  const clusterClass = cache.peek(ClusterClass, key)
  if (!clusterClass || isDeleting(clusterClass)) return proceed()

  const after = draft(clusterClass)
  const status = (after.status ??= {})
  const paused = isPaused(undefined, clusterClass)
  const computed = [pausedCondition(undefined, clusterClass)]
  let refs: TemplateRefs | undefined
  if (!paused) {
    refs = await settleTemplateRefs(clusterClass, context)
    status.variables = inlineVariables(clusterClass)
    if (status.variables.length === 0) delete status.variables
    computed.push(refVersionsUpToDate(refs), ClusterClassConditions.VariablesReady.true('VariablesReady'))
    if (refs.errors.length === 0) status.observedGeneration = clusterClass.metadata.generation ?? 1
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
  if (errors.length > 0) return condition.unknown('InternalError', InternalError)
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

/** The variables of the class itself, in the form of its status: sorted by name. */
const inlineVariables = ({ spec }: ClusterClass): NonNullable<NonNullable<ClusterClass['status']>['variables']> =>
  [...(spec.variables ?? [])]
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
    .map(({ name, required, schema, deprecatedV1Beta1Metadata }) => ({
      name,
      definitions: [
        {
          from: VariableDefinitionFromInline,
          required,
          schema: draft(schema),
          ...(deprecatedV1Beta1Metadata ? { deprecatedV1Beta1Metadata: draft(deprecatedV1Beta1Metadata) } : {}),
        },
      ],
    }))
