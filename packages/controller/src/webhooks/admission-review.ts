/**
 * AdmissionReviews, answered by the functions that the embedded API server calls without one.
 * Upstream: sigs.k8s.io/controller-runtime/pkg/webhook/admission, v0.24.
 */
import type { Admission, AdmissionContext, DeclaredKind, Json, Kind, KubeObject, Reader } from '@capstan/kube'
import { diffJson, draft, invalidObject, messageOf, resourceName, StatusError, structural, writeJSON } from '@capstan/kube'

/** What an API server does with a webhook's answer: takes over its changes, or heeds its refusal. */
export type Phase = 'default' | 'validate'

/** All that is asked of one kind, in one webhook for each phase. */
export interface AdmittedKind {
  readonly kind: Kind
  readonly admissions: readonly Admission[]
}

export const admittedKinds = (admissions: readonly Admission[]): AdmittedKind[] =>
  [...Map.groupBy(admissions, ({ kind }) => resourceName(kind)).values()].map((all) => ({
    kind: all[0]!.kind,
    admissions: all,
  }))

/** Tells whether an object has the shape that its kind declares; no kind, no shape. */
export function fitsIn(kinds: readonly DeclaredKind[], { group, version, plural }: Kind): (object: KubeObject) => boolean {
  const declared = kinds.find((one) => one.group === group && one.version === version && one.plural === plural)
  if (!declared) return () => true
  const { schema } = declared
  return (object) => structural(schema).validate(object).length === 0
}

/** For which writes somebody has something to say in this phase. Upstream: what is deleted is not defaulted. */
export function operationsOf({ admissions }: AdmittedKind, phase: Phase): AdmissionContext<KubeObject>['operation'][] {
  const asked = new Set(admissions.filter((one) => one[phase]).flatMap(({ operations = usual }) => operations))
  return (['CREATE', 'UPDATE', 'DELETE'] as const).filter((one) => asked.has(one) && (phase === 'validate' || one !== 'DELETE'))
}

const usual = ['CREATE', 'UPDATE'] as const

export interface AdmissionReview {
  readonly request: {
    readonly uid: string
    readonly operation: AdmissionContext<KubeObject>['operation']
    readonly object?: KubeObject | null
    readonly oldObject?: KubeObject | null
    readonly dryRun?: boolean
  }
}

export async function answerAdmission(
  { kind, admissions }: AdmittedKind,
  phase: Phase,
  { request }: AdmissionReview,
  { reader, fits }: { readonly reader: Reader; readonly fits: (object: KubeObject) => boolean },
): Promise<object> {
  const { uid, operation, object, oldObject, dryRun = false } = request
  const warnings: string[] = []
  const context = {
    operation,
    oldObject: oldObject ?? undefined,
    dryRun,
    reader,
    warn: (text: string) => void warnings.push(text),
  }
  const respond = (response: object) => ({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid, ...(warnings.length > 0 ? { warnings } : {}), ...response },
  })
  const about = object ?? oldObject
  if (!about)
    return respond({ allowed: false, status: new StatusError('BadRequest', 'there is no object in the request').status })
  const asked = admissions.filter(({ operations = usual }) => (operations as readonly string[]).includes(operation))
  try {
    if (phase === 'default') {
      const changed = draft(about)
      for (const one of asked) await one.default?.(changed, context)
      const patch = diffJson(about as unknown as Json, changed as unknown as Json)
      if (patch.length === 0) return respond({ allowed: true })
      return respond({ allowed: true, patchType: 'JSONPatch', patch: Buffer.from(writeJSON(patch)).toString('base64') })
    }
    const errors = []
    for (const one of asked) errors.push(...((await one.validate?.(about, context)) ?? []))
    if (errors.length === 0) return respond({ allowed: true })
    return respond({ allowed: false, status: invalidObject(kind, about.metadata.name ?? '', errors).status })
  } catch (err) {
    // Defaults rely on what the schema promises, and come before it. An object that breaks it is refused for that in a moment.
    if (phase === 'default' && !(err instanceof StatusError) && !fits(about)) return respond({ allowed: true })
    const refusal = err instanceof StatusError ? err : new StatusError('InternalError', messageOf(err))
    return respond({ allowed: false, status: refusal.status })
  }
}
