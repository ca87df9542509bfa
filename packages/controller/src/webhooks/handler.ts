/**
 * The webhooks of a manager as a function from Request to Response. Paths are those of upstream's managers, except for webhooks that are
 * declared by `SeparateWebhook`, which upstream does not have.
 */
import type { Admission, DeclaredKind, Reader } from '@capstan/kube'
import { isRecord, jsonTypeName, messageOf, notAnObjectText, readJSON, scanJSON } from '@capstan/kube'
import {
  type AdmissionReview,
  type AdmittedKind,
  admittedKinds,
  respondToAdmission,
  matchesSchemaOf,
  type Phase,
  rejection,
} from './admission-review.ts'
import { type ApiVersionLookup, respondToConversion, type ConversionReview } from './conversion-review.ts'

/**
 * Size from which an AdmissionReview is rejected as too large. It may contain an object and an old object, of which an API server sends at
 * most 3 MiB each. Upstream: controller-runtime pkg/webhook/admission, v0.24.
 */
const MaxAdmissionBytes = 7 * 1024 * 1024
/**
 * Size from which a ConversionReview is rejected as too large. A page of 500 objects of 128 KiB each fits; 500 is the default page size of
 * client-go. Neither upstream nor the protocol has a limit. The Kubernetes API server converts objects one by one. Capstan's API
 * server adds no object to a review whose objects already have 2^20 characters.
 */
const MaxConversionBytes = 64 * 1024 * 1024

export interface WebhooksOptions {
  /**
   * Kinds whose versions are converted. If an object violates the schema of its kind in this list, an unexpected error of a defaulting
   * function is ignored, because the API server rejects the object later.
   */
  readonly kinds: readonly DeclaredKind[]
  /** Looks up the versions of referenced kinds. Required for conversions to versions whose references contain an apiVersion. */
  readonly apiVersionOf?: ApiVersionLookup
  /** Admission functions, and the reader that they use. Absent when the API server calls admission functions directly. */
  readonly admission?: { readonly of: readonly Admission[]; readonly reader: Reader }
}

/** Path of the conversion webhook of all kinds. */
export const ConvertPath = '/convert'

/**
 * Returns the path of a webhook, as upstream's generateMutatePath and generateValidatePath. If the admission functions declare a webhook of
 * their own (`SeparateWebhook`), the path ends with the name of this webhook.
 */
export function admissionPath(phase: Phase, { kind: { group, version, kind }, webhook }: AdmittedKind): string {
  const path = `/${phase === 'default' ? 'mutate' : 'validate'}-${group.replaceAll('.', '-')}-${version}-${kind.toLowerCase()}`
  return webhook ? `${path}-${webhook.name}` : path
}

/** Returns the handler of all webhooks: admission of each kind in both phases, and conversion. */
export function webhookHandler({
  kinds,
  admission,
  apiVersionOf = unknownVersion,
}: WebhooksOptions): (request: Request) => Promise<Response> {
  const routes = new Map<string, (request: Request) => Promise<Response>>()
  for (const admitted of admittedKinds(admission?.of ?? [])) {
    const matchesSchema = matchesSchemaOf(kinds, admitted.kind)
    for (const phase of ['default', 'validate'] as const) {
      routes.set(admissionPath(phase, admitted), (request) =>
        handleAdmission(request, (review) =>
          respondToAdmission(admitted, phase, review, { reader: admission!.reader, matchesSchema }),
        ),
      )
    }
  }
  routes.set(ConvertPath, (request) => handleConversion(request, (review) => respondToConversion(kinds, review, apiVersionOf)))
  return async (request) => {
    const handle = routes.get(new URL(request.url).pathname)
    return handle ? handle(request) : new Response('404 page not found\n', { status: 404 })
  }
}

const unknownVersion: ApiVersionLookup = ({ group, kind }) =>
  Promise.reject(new Error(`no lookup of versions was given for ${kind}.${group}`))

/** Responds to an AdmissionReview. As upstream, the response to any other request is a rejection, with HTTP status 200. */
async function handleAdmission(request: Request, respond: (review: AdmissionReview) => Promise<object>): Promise<Response> {
  const reject = (code: number, message: string) => Response.json({ response: { uid: '', ...rejection(code, message) } })
  const text = await readText(request, MaxAdmissionBytes)
  if (text === '') return reject(400, 'request body is empty')
  if (text === undefined) return reject(413, tooLarge(MaxAdmissionBytes))
  const contentType = request.headers.get('content-type') ?? ''
  if (contentType !== 'application/json') return reject(400, `contentType=${contentType}, expected application/json`)
  const review = parseAdmissionReview(text)
  return typeof review === 'string' ? reject(400, review) : Response.json(await respond(review))
}

/**
 * Parses an AdmissionReview, without a check of its kind. A missing request counts as empty. Returns an error text if the text is not JSON,
 * or if the review or its request is not an object.
 */
function parseAdmissionReview(text: string): AdmissionReview | string {
  const notJSON = "couldn't get version/kind; json parse error: "
  let review: unknown
  try {
    review = readJSON(text)
  } catch {
    // Upstream parses a body that does not begin with `{` as YAML, in which plain text is a string.
    return `${notJSON}${/^\s*\{/.test(text) ? scanJSON(text).error : notAnObjectText(text)}`
  }
  if (review !== null && !isRecord(review)) return `${notJSON}${notAnObjectText(review)}`
  const request = review?.request ?? {}
  if (isRecord(request)) return { request: request as unknown as AdmissionReview['request'] }
  return `json: cannot unmarshal ${jsonTypeName(request)} into Go struct field unversionedAdmissionReview.AdmissionReview.request of type v1.AdmissionRequest`
}

/** Responds to a ConversionReview. As upstream, the response to any other request has an HTTP error status. */
async function handleConversion(request: Request, respond: (review: ConversionReview) => Promise<object>): Promise<Response> {
  const reject = (status: number, message: string) => new Response(`${message}\n`, { status })
  const text = await readText(request, MaxConversionBytes)
  if (text === undefined) return reject(413, tooLarge(MaxConversionBytes))
  let review: unknown
  try {
    review = text === '' ? undefined : readJSON(text)
  } catch (err) {
    return reject(400, `the body is not JSON: ${messageOf(err)}`)
  }
  const conversion = isRecord(review) ? review.request : undefined
  if (!isRecord(conversion) || !Array.isArray(conversion.objects ?? []))
    return reject(400, 'there is no valid request in the body')
  return Response.json(await respond({ request: conversion as unknown as ConversionReview['request'] }))
}

const tooLarge = (maxBytes: number): string => `request entity is too large; limit is ${maxBytes} bytes`

/** Returns the body of the request, or `undefined` if it has `maxBytes` or more. */
async function readText(request: Request, maxBytes: number): Promise<string | undefined> {
  let text = ''
  const decoder = new TextDecoder()
  let size = 0
  for await (const bytes of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    size += bytes.length
    if (size >= maxBytes) return undefined
    text += decoder.decode(bytes, { stream: true })
  }
  return text
}
