/** The webhooks of a manager as a function from Request to Response. Paths are those of upstream's managers. */
import type { Admission, DeclaredKind, Reader } from '@capstan/kube'
import { isRecord, readJSON } from '@capstan/kube'
import {
  type AdmissionReview,
  type AdmittedKind,
  admittedKinds,
  respondToAdmission,
  matchesSchemaOf,
  type Phase,
} from './admission-review.ts'
import { type ApiVersionLookup, respondToConversion, type ConversionReview } from './conversion-review.ts'

/**
 * Maximum size of an AdmissionReview: object and old object, of which an API server sends at most 3 MiB each. Upstream: controller-runtime
 * pkg/webhook/admission, v0.24.
 */
const MaxAdmissionBytes = 7 * 1024 * 1024
/**
 * Maximum size of a ConversionReview: a page of 500 objects, the default of client-go, of 128 KiB each. Upstream has no limit, and neither
 * has the protocol. The Kubernetes API server converts objects one by one, and that of Capstan calls with about 1 MiB of objects.
 */
const MaxConversionBytes = 64 * 1024 * 1024

export interface WebhooksOptions {
  /** Kinds whose versions are converted. */
  readonly kinds: readonly DeclaredKind[]
  /** Looks up the versions of referenced kinds. Required for conversions to versions whose references contain an apiVersion. */
  readonly apiVersionOf?: ApiVersionLookup
  /** Absent when the API server calls admission functions directly. */
  readonly admission?: { readonly of: readonly Admission[]; readonly reader: Reader }
}

export const ConvertPath = '/convert'

/** Returns the path of a webhook, as upstream's generateMutatePath and generateValidatePath. A separate webhook adds its name. */
export function admissionPath(phase: Phase, { kind: { group, version, kind }, webhook }: AdmittedKind): string {
  const path = `/${phase === 'default' ? 'mutate' : 'validate'}-${group.replaceAll('.', '-')}-${version}-${kind.toLowerCase()}`
  return webhook ? `${path}-${webhook.name}` : path
}

export function webhookHandler({
  kinds,
  admission,
  apiVersionOf = unknownVersion,
}: WebhooksOptions): (request: Request) => Promise<Response> {
  const routes = new Map<string, (review: never) => object | Promise<object>>()
  for (const admitted of admittedKinds(admission?.of ?? [])) {
    const matchesSchema = matchesSchemaOf(kinds, admitted.kind)
    for (const phase of ['default', 'validate'] as const) {
      routes.set(admissionPath(phase, admitted), (review: AdmissionReview) =>
        respondToAdmission(admitted, phase, review, { reader: admission!.reader, matchesSchema }),
      )
    }
  }
  routes.set(ConvertPath, (review: ConversionReview) => respondToConversion(kinds, review, apiVersionOf))
  return async (request) => {
    const { pathname } = new URL(request.url)
    const respond = routes.get(pathname)
    if (!respond) return new Response('404 page not found\n', { status: 404 })
    if (request.method !== 'POST') return new Response('405 method not allowed\n', { status: 405 })
    const review = await parseReview(request, pathname === ConvertPath ? MaxConversionBytes : MaxAdmissionBytes)
    if (typeof review === 'string') return new Response(`${review}\n`, { status: 400 })
    return Response.json(await respond(review as never))
  }
}

const unknownVersion: ApiVersionLookup = ({ group, kind }) =>
  Promise.reject(new Error(`no lookup of versions was given for ${kind}.${group}`))

/** Parses the review. Returns an error text for any other body. */
async function parseReview(request: Request, maxBytes: number): Promise<object | string> {
  let text = ''
  const decoder = new TextDecoder()
  let size = 0
  for await (const bytes of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    size += bytes.length
    if (size > maxBytes) return `request entity is too large; limit is ${maxBytes} bytes`
    text += decoder.decode(bytes, { stream: true })
  }
  try {
    const review = readJSON(text)
    return isRecord(review) && isRecord(review.request) ? review : 'there is no request in the body'
  } catch (err) {
    return `the body is not JSON: ${(err as Error).message}`
  }
}
