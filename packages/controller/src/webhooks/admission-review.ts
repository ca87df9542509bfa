/**
 * Responds to AdmissionReviews with the admission functions that the embedded API server calls directly.
 * Upstream: sigs.k8s.io/controller-runtime/pkg/webhook/admission, v0.24.
 */
import type {
  Admission,
  AdmissionContext,
  DeclaredKind,
  FieldError,
  Json,
  Kind,
  KubeObject,
  Reader,
  RequestingUser,
  SeparateWebhook,
} from '@capstan/kube'
import {
  appendAll,
  diffJson,
  draft,
  invalidObject,
  messageOf,
  resourceName,
  StatusError,
  structural,
  writeJSON,
} from '@capstan/kube'

/** Kind of webhook: `default` returns a patch for the object, `validate` allows or rejects the request. */
export type Phase = 'default' | 'validate'

/** Admission functions of one kind that share a webhook for each phase. */
export interface AdmittedKind {
  readonly kind: Kind
  readonly admissions: readonly Admission[]
  /** Set when the functions declare a webhook of their own. */
  readonly webhook?: SeparateWebhook
}

/** Groups admission functions by kind, and functions that declare a webhook of their own also by the name of this webhook. */
export const admittedKinds = (admissions: readonly Admission[]): AdmittedKind[] =>
  [...Map.groupBy(admissions, ({ kind, webhook }) => `${resourceName(kind)} ${webhook?.name ?? ''}`).values()].map(
    (admissionsOfKind) => ({
      kind: admissionsOfKind[0]!.kind,
      admissions: admissionsOfKind,
      ...(admissionsOfKind[0]!.webhook ? { webhook: admissionsOfKind[0]!.webhook } : {}),
    }),
  )

/** Returns a function that checks whether an object matches the schema of the kind. It accepts any object if `kinds` lacks the kind. */
export function matchesSchemaOf(
  kinds: readonly DeclaredKind[],
  { group, version, plural }: Kind,
): (object: KubeObject) => boolean {
  const declared = kinds.find((kind) => kind.group === group && kind.version === version && kind.plural === plural)
  if (!declared) return () => true
  const { schema } = declared
  return (object) => structural(schema).validate(object).length === 0
}

/** Returns the operations for which the kind has admission functions in this phase. As upstream, deletions are not defaulted. */
export function operationsOf({ admissions }: AdmittedKind, phase: Phase): AdmissionContext<KubeObject>['operation'][] {
  const operations = new Set(
    admissions.filter((admission) => admission[phase]).flatMap(({ operations = DefaultOperations }) => operations),
  )
  return Operations.filter((operation) => operations.has(operation) && (phase === 'validate' || operation !== 'DELETE'))
}

const Operations = ['CREATE', 'UPDATE', 'DELETE'] as const
const DefaultOperations = ['CREATE', 'UPDATE'] as const

export interface AdmissionReview {
  readonly request: {
    readonly uid?: string
    /** An API server sends one of these operations, because the webhooks are configured for no others. Other clients may send none or another text. */
    readonly operation: AdmissionContext<KubeObject>['operation']
    readonly userInfo?: RequestingUser
    readonly object?: KubeObject | null
    readonly oldObject?: KubeObject | null
    readonly dryRun?: boolean
  }
}

/** Returns the response to a request that cannot be reviewed. Upstream: Errored. */
export const rejection = (code: number, message: string) => ({ allowed: false, status: { metadata: {}, message, code } })

/** Returns the AdmissionReview with the response of the admission functions. */
export async function respondToAdmission(
  { kind, admissions }: AdmittedKind,
  phase: Phase,
  { request }: AdmissionReview,
  { reader, matchesSchema }: { readonly reader: Reader; readonly matchesSchema: (object: KubeObject) => boolean },
): Promise<object> {
  const { uid = '', operation, userInfo = {}, object, oldObject, dryRun = false } = request
  const warnings: string[] = []
  const context = {
    operation,
    oldObject: oldObject ?? undefined,
    dryRun,
    userInfo,
    reader,
    warn: (text: string) => void warnings.push(text),
  }
  const respond = (response: object) => ({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid, ...(warnings.length > 0 ? { warnings } : {}), ...response },
  })
  if (phase === 'default' && operation === 'DELETE') return respond({ allowed: true })
  if (phase === 'validate' && !Operations.includes(operation)) {
    return respond(rejection(400, `unknown operation ${JSON.stringify((operation as string | undefined) ?? '')}`))
  }
  const target = operation === 'DELETE' ? oldObject : object
  if (!target || (phase === 'validate' && operation === 'UPDATE' && !oldObject)) {
    return respond(rejection(400, 'there is no content to decode'))
  }
  const called = admissions.filter(({ operations = DefaultOperations }) => (operations as readonly string[]).includes(operation))
  try {
    if (phase === 'default') {
      const changed = draft(target)
      for (const admission of called) await admission.default?.(changed, context)
      const patch = diffJson(target as unknown as Json, changed as unknown as Json)
      if (patch.length === 0) return respond({ allowed: true })
      return respond({ allowed: true, patchType: 'JSONPatch', patch: Buffer.from(writeJSON(patch)).toString('base64') })
    }
    const errors: FieldError[] = []
    for (const admission of called) appendAll(errors, (await admission.validate?.(target, context)) ?? [])
    if (errors.length === 0) return respond({ allowed: true })
    return respond({ allowed: false, status: invalidObject(kind, target.metadata.name ?? '', errors).status })
  } catch (err) {
    // Defaulting functions rely on the schema, but run before the API server validates the object by the schema. If the object violates the
    // schema, the API server rejects it then.
    if (phase === 'default' && !(err instanceof StatusError) && !matchesSchema(target)) return respond({ allowed: true })
    const { status } = err instanceof StatusError ? err : new StatusError('InternalError', messageOf(err))
    return respond({ allowed: false, status })
  }
}
