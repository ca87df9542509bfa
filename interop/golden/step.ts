/**
 * Types and functions for the scenarios of this folder. `interop/recordings/record-golden.ts` sends their requests and records the
 * responses.
 */

/** A request of a step. A body of type string is sent as text, any other body as JSON. */
export interface Sent {
  readonly method: string
  readonly path: string
  readonly headers?: { readonly [name: string]: string }
  readonly body?: unknown
}

/** One request, or a pause without a request. */
export interface Step {
  /** Request whose response is recorded. */
  readonly request?: Sent
  /** Request whose response is not recorded, and that must succeed. */
  readonly prepare?: Sent
  /** Paths of values in the response, by variable. Later requests contain the value of a variable in place of `{{VARIABLE}}`. */
  readonly save?: { readonly [variable: string]: string }
  /** Milliseconds to wait before the request. */
  readonly sleepMs?: number
  /** Whether the body of the response differs between servers, so that only status and headers are compared. */
  readonly unstable?: true
}

export interface Scenario {
  readonly name: string
  readonly steps: readonly Step[]
}

const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }

export const post = (path: string, body: unknown, headers?: Sent['headers']): Step => sent('POST', path, body, headers)
export const put = (path: string, body: unknown): Step => sent('PUT', path, body)
export const get = (path: string): Step => sent('GET', path)
export const remove = (path: string, body?: unknown): Step => sent('DELETE', path, body)
export const mergePatch = (path: string, body: unknown): Step => sent('PATCH', path, body)
export const strategicPatch = (path: string, body: unknown): Step =>
  sent('PATCH', path, body, { 'content-type': 'application/strategic-merge-patch+json' })
export const jsonPatch = (path: string, body: unknown): Step =>
  sent('PATCH', path, body, { 'content-type': 'application/json-patch+json' })
/** Returns a step that applies an object with server-side apply, as field manager `applier`. */
export const apply = (path: string, body: unknown): Step =>
  sent('PATCH', `${path}?fieldManager=applier`, body, { 'content-type': 'application/apply-patch+yaml' })
/** Returns a step that gets the table that `kubectl get` prints, without the objects. */
export const columnsOf = (path: string): Step => sent('GET', `${path}?includeObject=None`, undefined, table)

const sent = (method: string, path: string, body?: unknown, headers?: Sent['headers']): Step => ({
  request: { method, path, ...(headers ? { headers } : {}), ...(body === undefined ? {} : { body }) },
})

/**
 * Returns one step for each of `changes`, which are JSON merge patches. The step creates the object `good` with one change, under the name
 * `bad-INDEX` unless the change has metadata. Most of these objects are invalid.
 */
export const variants = (path: string, good: object, changes: readonly object[]): Step[] =>
  changes.map((change, index) => post(path, merged(good, { metadata: { name: `bad-${index}` }, ...change })))

/** Applies a JSON merge patch (RFC 7396). */
export function merged(into: unknown, change: unknown): unknown {
  if (typeof change !== 'object' || change === null || Array.isArray(change)) return change
  const result: { [member: string]: unknown } =
    typeof into === 'object' && into !== null && !Array.isArray(into) ? { ...(into as object) } : {}
  for (const [member, value] of Object.entries(change)) {
    if (value === null) delete result[member]
    else result[member] = merged(result[member], value)
  }
  return result
}
