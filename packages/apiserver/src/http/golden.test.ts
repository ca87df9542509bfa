/**
 * Replays requests to a real kube-apiserver v1.36.2, and compares the answers. `testdata/golden` has the recordings; what differs
 * and is known to is listed below by file, scenario and step, so that it can only become less.
 */
import { readFileSync } from 'node:fs'
import { isRecord, seededRandom, seconds, type UnknownObject, VirtualClock } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { controllerPlugins } from '../admission/plugin-names.ts'
import { type ApiServer, createApiServer } from '../server.ts'
import type { HttpAnswer, HttpHandler, Identity } from './exchange.ts'
import type { Answered, Recorded } from './golden-match.ts'
import { at, differences } from './golden-match.ts'
import { knownDifferences } from './golden-known.ts'
import { createHandler } from './handler.ts'
import { parseYAML } from './yaml.ts'

interface Sent {
  readonly as?: string
  readonly method: string
  readonly path: string
  readonly headers?: { readonly [name: string]: string | null }
  readonly body?: unknown
}

interface Step {
  readonly request?: Sent
  readonly response?: Recorded
  readonly prepare?: Sent
  readonly setup?: string
  readonly crd?: object
  readonly save?: { readonly [variable: string]: string }
  readonly sleepMs?: number
  readonly waitFor?: { readonly path: string; readonly status: number }
  readonly maxMs?: number
  readonly during?: readonly Sent[]
  readonly unstable?: boolean
}

interface Recording {
  readonly scenarios: readonly { readonly name: string; readonly steps: readonly Step[] }[]
}

const folder = new URL('../../testdata/golden/', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, folder), 'utf8')

/** Per file: how many of its requests are answered as recorded, of how many. */
describe.each<[string, number, number]>([
  ['errors', 188, 190],
  ['list-watch', 51, 58],
  ['lifecycle', 102, 102],
  ['cr-validation', 88, 88],
  ['crd-definition', 47, 47],
  ['core-types', 43, 45],
  ['apps', 144, 144],
  ['storage', 69, 74],
  ['policy', 38, 38],
  ['networking', 86, 86],
])('%s', (file, asRecorded, requests) => {
  test('answers as the recorded server did, but for what is listed', async () => {
    const { scenarios } = JSON.parse(read(`${file}.json`)) as Recording
    const replay = new Replay(rootCertificate(scenarios) ?? 'PEM')
    const failed: { [step: string]: string[] } = {}
    let compared = 0
    try {
      await replay.send({
        method: 'POST',
        path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=kubectl-client-side-apply',
        body: appliedByKubectl(parseYAML(read('widget-crd.yaml')) as UnknownObject),
      })
      await replay.sleep(seconds(1))
      for (const { name, steps } of scenarios) {
        for (const [index, step] of steps.entries()) {
          const found = await replay.step(step)
          if (step.request) compared++
          if (found.length > 0)
            failed[`${name} / ${index}`] = [`${step.request?.method} ${step.request?.path.slice(0, 120)}`, ...found]
        }
      }
    } finally {
      await replay.close()
    }
    const known = Object.values(knownDifferences[file] ?? {}).flat()
    const news = Object.entries(failed).filter(([step]) => !known.includes(step))
    expect(news.map(([step, found]) => `${step}\n    ${found.join('\n    ')}`).join('\n')).toBe('')
    expect(
      known.filter((step) => !(step in failed)),
      'answered as recorded by now: take them off the list',
    ).toEqual([])
    expect({ requests: compared, asRecorded: compared - known.length }).toEqual({ requests, asRecorded })
  })
})

/** As `kubectl apply` sends it: with itself in an annotation. */
function appliedByKubectl(object: UnknownObject): object {
  const annotated = { ...object, metadata: { annotations: {}, ...object.metadata } }
  const text = JSON.stringify(sorted(annotated)).replaceAll('>', '\\u003e')
  return { ...object, metadata: { ...object.metadata, annotations: { [LastApplied]: `${text}\n` } } }
}

const LastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

const sorted = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sorted)
    : isRecord(value)
      ? Object.fromEntries(
          Object.entries(value)
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([key, member]) => [key, sorted(member)]),
        )
      : value

/** The certificate of its authority that the recorded server published in every namespace. */
function rootCertificate(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const data = at(value, 'metadata.name') === 'kube-root-ca.crt' ? at(value, 'data') : undefined
  if (data !== undefined) return (data as { readonly 'ca.crt': string })['ca.crt']
  for (const member of Object.values(value)) {
    const found = rootCertificate(member)
    if (found) return found
  }
  return undefined
}

const identities: { readonly [name: string]: Identity } = {
  admin: { kind: 'user', name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] },
  alice: { kind: 'user', name: 'alice', groups: ['devs', 'system:authenticated'] },
  bob: { kind: 'user', name: 'bob', groups: ['devs', 'system:authenticated'] },
  badtoken: { kind: 'refused' },
  anon: { kind: 'anonymous' },
}

/** One fresh server, its time moved on only when everything waits for it. */
class Replay {
  readonly #clock = new VirtualClock()
  readonly #server: ApiServer
  readonly #handler: HttpHandler
  readonly #variables = new Map<string, string>()

  /** Set up as the recorded server was. */
  constructor(rootCA: string) {
    this.#server = createApiServer({
      clock: this.#clock,
      random: seededRandom(1),
      authorization: ['RBAC'],
      controllers: { serviceAccounts: true, rootCA },
      admissionPlugins: { enable: controllerPlugins },
    })
    this.#handler = createHandler({ engine: this.#server.engine, clock: this.#clock })
  }

  async step(step: Step): Promise<string[]> {
    if (step.sleepMs) await this.sleep(step.sleepMs)
    if (step.crd) {
      await this.send({ method: 'POST', path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', body: step.crd })
      await this.sleep(seconds(1))
    }
    if (step.prepare) this.#save(step, await this.send(step.prepare))
    if (step.waitFor) await this.#waitFor(step.waitFor)
    if (!step.request || !step.response) return []
    const answer = await this.send(step.request, step)
    this.#save(step, answer)
    return differences(step.response, answer, { unstable: step.unstable === true })
  }

  async send(sent: Sent, { maxMs = 30_000, during = [] }: Pick<Step, 'maxMs' | 'during'> = {}): Promise<Answered> {
    const { path, method } = this.#filled(sent)
    const end = new AbortController()
    const body = bodyOf(this.#filled(sent.body))
    const defaults = {
      accept: 'application/json',
      'user-agent': 'golden/v1',
      ...(sent.body === undefined
        ? {}
        : { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' }),
    }
    const headers = Object.fromEntries(
      Object.entries({ ...defaults, ...sent.headers }).filter(([, value]) => value !== null),
    ) as {
      [name: string]: string
    }
    const handling = this.#handler(
      { method, url: path, headers, signal: end.signal, streamSignal: end.signal, body: async () => Buffer.from(body) },
      identities[sent.as ?? 'admin']!,
    )
    const answer = await this.#untilSettled(handling, seconds(30))
    const reading = textOf(answer, method)
    for (const request of during) await this.send(request)
    const stop = this.#clock.schedule(maxMs, () => end.abort())
    const text = await this.#untilSettled(reading, maxMs)
    stop.cancel()
    return { ...answer, text }
  }

  /** Lets everything run that can, and time pass in which `ms` go by. */
  async sleep(ms: number): Promise<void> {
    const end = this.#clock.now() + ms
    await turns()
    while (this.#clock.step(end)) await turns()
  }

  async close(): Promise<void> {
    await this.#server.close()
  }

  async #untilSettled<T>(promise: Promise<T>, limit: number): Promise<T> {
    let settled = false
    const done = () => {
      settled = true
    }
    promise.then(done, done)
    const end = this.#clock.now() + limit
    for (await turns(); !settled; await turns()) if (!this.#clock.step(end) && !settled) await turns()
    return promise
  }

  async #waitFor({ path, status }: { path: string; status: number }): Promise<void> {
    for (let tries = 0; tries < 100; tries++) {
      if ((await this.send({ method: 'GET', path })).status === status) return
      await this.sleep(250)
    }
  }

  #save({ save = {} }: Step, { text }: Answered): void {
    for (const [variable, path] of Object.entries(save)) this.#variables.set(variable, String(at(JSON.parse(text), path)))
  }

  #filled<T>(value: T): T {
    if (value === undefined) return value
    const text = JSON.stringify(value).replace(/\{\{(\w+)\}\}/g, (_, name: string) => this.#variables.get(name) ?? '')
    return JSON.parse(text) as T
  }
}

/** Bodies that were shortened in the recording are put back. */
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

async function textOf({ body }: HttpAnswer, method: string): Promise<string> {
  if (method === 'HEAD') return ''
  if (typeof body === 'string' || Buffer.isBuffer(body)) return body.toString()
  const parts: Buffer[] = []
  for await (const part of body) parts.push(part)
  return Buffer.concat(parts).toString()
}

/** Long enough for every promise that waits for no time. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
}
