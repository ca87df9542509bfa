/** The webhooks of a manager as a function from Request to Response. Paths are those of upstream's managers. */
import type { Admission, DeclaredKind, Kind, Reader } from '@capstan/kube'
import { isRecord, readJSON } from '@capstan/kube'
import { type AdmissionReview, admittedKinds, answerAdmission, fitsIn, type Phase } from './admission-review.ts'
import { answerConversion, type ConversionReview } from './conversion-review.ts'

/** An object, the one before it, and what surrounds them. An API server sends no objects larger than 3 MiB. */
const MaxBodyBytes = 7 * 1024 * 1024

export interface WebhooksOptions {
  /** Kinds whose other versions are converted. */
  readonly kinds: readonly DeclaredKind[]
  /** Absent where the API server runs it as functions. */
  readonly admission?: { readonly of: readonly Admission[]; readonly reader: Reader }
}

export const ConvertPath = '/convert'

/** Upstream: generateMutatePath and generateValidatePath. */
export const admissionPath = (phase: Phase, { group, version, kind }: Kind): string =>
  `/${phase === 'default' ? 'mutate' : 'validate'}-${group.replaceAll('.', '-')}-${version}-${kind.toLowerCase()}`

export function webhookHandler({ kinds, admission }: WebhooksOptions): (request: Request) => Promise<Response> {
  const routes = new Map<string, (review: never) => object | Promise<object>>()
  for (const admitted of admittedKinds(admission?.of ?? [])) {
    const fits = fitsIn(kinds, admitted.kind)
    for (const phase of ['default', 'validate'] as const) {
      routes.set(admissionPath(phase, admitted.kind), (review: AdmissionReview) =>
        answerAdmission(admitted, phase, review, { reader: admission!.reader, fits }),
      )
    }
  }
  routes.set(ConvertPath, (review: ConversionReview) => answerConversion(kinds, review))
  return async (request) => {
    const answer = routes.get(new URL(request.url).pathname)
    if (!answer) return new Response('404 page not found\n', { status: 404 })
    if (request.method !== 'POST') return new Response('405 method not allowed\n', { status: 405 })
    const review = await reviewIn(request)
    if (typeof review === 'string') return new Response(`${review}\n`, { status: 400 })
    return Response.json(await answer(review as never))
  }
}

/** The document, or why it is none. */
async function reviewIn(request: Request): Promise<object | string> {
  let text = ''
  const decoder = new TextDecoder()
  let size = 0
  for await (const bytes of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    size += bytes.length
    if (size > MaxBodyBytes) return `request entity is too large; limit is ${MaxBodyBytes} bytes`
    text += decoder.decode(bytes, { stream: true })
  }
  try {
    const review = readJSON(text)
    return isRecord(review) && isRecord(review.request) ? review : 'there is no request in the body'
  } catch (err) {
    return `the body is no JSON: ${(err as Error).message}`
  }
}
