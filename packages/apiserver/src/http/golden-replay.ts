/**
 * Sends the recorded requests to a server, and compares its responses with those of a real kube-apiserver v1.36.2. The recordings are in
 * `testdata/golden`. Only for tests.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { seconds, stableText, type UnknownObject } from '@capstan/kube'
import { type ActualResponse, at, differences, type Recorded } from './golden-match.ts'
import { parseYAML } from './body/yaml.ts'

/** A new API server with RBAC authorization and running controllers, as the recordings expect it. */
export interface GoldenServer {
  /** Sends a request. A response that does not end by itself, such as a watch, is read for `maxMs`; `during` runs meanwhile. */
  send(request: GoldenRequest, reading: { readonly maxMs: number; readonly during: () => Promise<void> }): Promise<ActualResponse>
  sleep(ms: number): Promise<void>
}

export interface GoldenRequest {
  /** Credentials of the request: those of `admin`, `alice` or `bob`, an invalid token (`badtoken`), or none (`anon`). */
  readonly as: string
  readonly method: string
  readonly path: string
  readonly headers: { readonly [name: string]: string }
  /** Empty for requests without a body. */
  readonly body: string
}

export interface Replayed {
  /** Number of compared responses. */
  readonly requests: number
  /** Failed steps, by scenario and index of the step: method and path of the request, then the differences of the response. */
  readonly failed: { readonly [step: string]: readonly string[] }
}

interface SentRequest {
  readonly as?: string
  readonly method: string
  readonly path: string
  readonly headers?: { readonly [name: string]: string | null }
  readonly body?: unknown
}

/** A step of a scenario: sleeps, creates the CRD, prepares, waits, and sends the request, as far as the step has these members. */
interface Step {
  /** Request whose response is compared with `response`. */
  readonly request?: SentRequest
  readonly response?: Recorded
  /** Request whose response is not compared. */
  readonly prepare?: SentRequest
  readonly crd?: object
  /**
   * Paths of values in the responses to `prepare` and `request`, by variable. Later requests contain the value of a variable where the
   * recording has `{{VARIABLE}}`.
   */
  readonly save?: { readonly [variable: string]: string }
  readonly sleepMs?: number
  /** Waits until a GET of the path returns the status, for at most 25 seconds. */
  readonly waitFor?: { readonly path: string; readonly status: number }
  /** Milliseconds after which reading the response to `request` ends. Default: 30 seconds. */
  readonly maxMs?: number
  /** Requests that are sent while the response to `request` is read. */
  readonly during?: readonly SentRequest[]
  /** Compares only status and headers of the response. */
  readonly unstable?: boolean
}

export interface Recording {
  readonly scenarios: readonly { readonly name: string; readonly steps: readonly Step[] }[]
}

const folder = new URL('../../testdata/golden/', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, folder), 'utf8')

/** Names of all recordings. */
export const recordings = (): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length))

export const readRecording = (file: string): Recording => JSON.parse(read(`${file}.json`)) as Recording

/** Creates the CRD in `widget-crd.yaml`, then replays all steps of a recording in order. */
export async function replay({ scenarios }: Recording, server: GoldenServer): Promise<Replayed> {
  const replaying = new Replay(server)
  const failed: { [step: string]: string[] } = {}
  let requests = 0
  await replaying.send({
    method: 'POST',
    path: `${definitions}?fieldManager=kubectl-client-side-apply`,
    body: withLastApplied(parseYAML(read('widget-crd.yaml')) as UnknownObject),
  })
  await server.sleep(seconds(1))
  for (const { name, steps } of scenarios) {
    for (const [index, step] of steps.entries()) {
      const problems = await replaying.step(step)
      if (step.request) requests++
      if (problems.length > 0) {
        failed[`${name} / ${index}`] = [`${step.request?.method} ${step.request?.path.slice(0, 120)}`, ...problems]
      }
    }
  }
  return { requests, failed }
}

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

class Replay {
  readonly #server: GoldenServer
  readonly #variables = new Map<string, string>()

  constructor(server: GoldenServer) {
    this.#server = server
  }

  async step(step: Step): Promise<string[]> {
    if (step.sleepMs) await this.#server.sleep(step.sleepMs)
    if (step.crd) {
      await this.send({ method: 'POST', path: definitions, body: step.crd })
      await this.#server.sleep(seconds(1))
    }
    if (step.prepare) this.#save(step, await this.send(step.prepare))
    if (step.waitFor) await this.#waitFor(step.waitFor)
    if (!step.request || !step.response) return []
    const response = await this.send(step.request, step)
    this.#save(step, response)
    return differences(step.response, response, { unstable: step.unstable === true })
  }

  async send(
    sent: SentRequest,
    { maxMs = seconds(30), during = [] }: Pick<Step, 'maxMs' | 'during'> = {},
  ): Promise<ActualResponse> {
    const { path, method } = this.#filled(sent)
    const defaults = {
      accept: 'application/json',
      'user-agent': 'golden/v1',
      ...(sent.body === undefined
        ? {}
        : { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' }),
    }
    const presentHeaders = Object.entries({ ...defaults, ...sent.headers }).filter(([, value]) => value !== null)
    const headers = Object.fromEntries(presentHeaders) as { [name: string]: string }
    const request = { as: sent.as ?? 'admin', method, path, headers, body: bodyOf(this.#filled(sent.body)) }
    return this.#server.send(request, {
      maxMs,
      during: async () => {
        for (const request of during) await this.send(request)
      },
    })
  }

  async #waitFor({ path, status }: { path: string; status: number }): Promise<void> {
    for (let tries = 0; tries < 100; tries++) {
      if ((await this.send({ method: 'GET', path })).status === status) return
      await this.#server.sleep(250)
    }
  }

  #save({ save = {} }: Step, { text }: ActualResponse): void {
    for (const [variable, path] of Object.entries(save)) this.#variables.set(variable, String(at(JSON.parse(text), path)))
  }

  /** Replaces `{{VARIABLE}}` in all strings of a value by the saved value. */
  #filled<T>(value: T): T {
    if (value === undefined) return value
    const text = JSON.stringify(value).replace(/\{\{(\w+)\}\}/g, (_, name: string) => this.#variables.get(name) ?? '')
    return JSON.parse(text) as T
  }
}

/** Sets the annotation that `kubectl apply` adds, as the only annotation: JSON as Go encodes it, with sorted members and `>` escaped. */
function withLastApplied(object: UnknownObject): object {
  const annotated = { ...object, metadata: { annotations: {}, ...object.metadata } }
  const text = stableText(annotated).replaceAll('>', '\\u003e')
  return { ...object, metadata: { ...object.metadata, annotations: { [LastApplied]: `${text}\n` } } }
}

const LastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** Restores bodies that were shortened in the recording. */
function bodyOf(body: unknown): string {
  if (body === '<10001 test operations>') {
    return JSON.stringify(Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/metadata/name', value: 'x' })))
  }
  if (body === '<secret with 1048577 bytes of data>') {
    const data = { a: Buffer.alloc(1_048_577).toString('base64') }
    return JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'big' }, data })
  }
  const text = typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body)
  return text.replace('<262145 x>', () => 'x'.repeat(262_145))
}
