/**
 * Replays requests that were recorded with a real kube-apiserver v1.36.2, and compares the responses. Known differences are listed in
 * `golden-known.ts` by recording, reason and step; an entry without a difference fails the test.
 */
import { seededRandom, seconds, VirtualClock } from '@capstan/kube'
import { describe, expect, onTestFinished, test } from 'vitest'
import { controllerPlugins } from '../../../kubernetes-kinds/src/admission/plugin-names.ts'
import { type ApiServer, createApiServer } from '@capstan/kubernetes-kinds'
import type { Identity } from '../auth/authenticate.ts'
import type { HttpResponse, HttpHandler } from './exchange.ts'
import { knownDifferences } from './golden-known.ts'
import type { ActualResponse } from './golden-match.ts'
import { type GoldenRequest, type GoldenServer, readRecording, replay } from './golden-replay.ts'
import { createHandler } from './handler.ts'

/** Each recording, with the number of requests that get the recorded response, and the number of all requests. */
describe.each<[string, number, number]>([
  ['errors', 190, 190],
  ['list-watch', 58, 58],
  ['lifecycle', 102, 102],
  ['cr-validation', 88, 88],
  ['crd-definition', 47, 47],
  ['core-types', 45, 45],
  ['apps', 144, 144],
  ['batch', 69, 71],
  ['small-groups', 131, 132],
  ['autoscaling', 41, 42],
  ['events', 33, 33],
  ['storage', 73, 74],
  ['policy', 38, 38],
  ['core', 177, 181],
  ['networking', 86, 86],
  ['resource', 329, 329],
  ['other-clients', 100, 108],
])('requests of the recording %s', (file, asRecorded, requests) => {
  test('get the recorded responses, except for listed differences', async () => {
    const server = new InProcess()
    onTestFinished(() => server.close())
    const replayed = await replay(readRecording(file), server)
    const knownSteps = Object.values(knownDifferences[file] ?? {}).flat()
    const unexpected = Object.entries(replayed.failed).filter(([step]) => !knownSteps.includes(step))
    expect(unexpected.map(([step, problems]) => `${step}\n    ${problems.join('\n    ')}`).join('\n')).toBe('')
    expect(
      knownSteps.filter((step) => !(step in replayed.failed)),
      'these responses are as recorded: remove their steps from golden-known.ts',
    ).toEqual([])
    expect({ requests: replayed.requests, asRecorded: replayed.requests - knownSteps.length }).toEqual({ requests, asRecorded })
  })
})

const identities: { readonly [name: string]: Identity } = {
  admin: { kind: 'user', name: 'kubernetes-admin', uid: 'admin', groups: ['system:masters', 'system:authenticated'] },
  alice: { kind: 'user', name: 'alice', groups: ['devs', 'system:authenticated'] },
  bob: { kind: 'user', name: 'bob', groups: ['devs', 'system:authenticated'] },
  badtoken: { kind: 'rejected' },
  anon: { kind: 'anonymous' },
}

/** A fresh server. Its clock advances only when all pending work waits for the clock. */
class InProcess implements GoldenServer {
  readonly #clock = new VirtualClock()
  readonly #server: ApiServer
  readonly #handler: HttpHandler

  /** Creates a server with RBAC authorization and running controllers, as the recordings expect it. */
  constructor() {
    this.#server = createApiServer({
      clock: this.#clock,
      random: seededRandom(1),
      authorization: ['RBAC'],
      controllers: { serviceAccounts: true, rootCA: '-----BEGIN CERTIFICATE-----', systemObjects: true },
      admissionPlugins: { enable: controllerPlugins },
    })
    this.#handler = createHandler({ engine: this.#server.engine, clock: this.#clock })
  }

  async send(
    { as, method, path, headers, body }: GoldenRequest,
    { maxMs, during }: { maxMs: number; during: () => Promise<void> },
  ): Promise<ActualResponse> {
    const end = new AbortController()
    const handling = this.#handler(
      { method, url: path, headers, signal: end.signal, streamSignal: end.signal, body: async () => Buffer.from(body) },
      identities[as]!,
    )
    const response = await this.#untilSettled(handling, seconds(30))
    const reading = textOf(response, method)
    await during()
    const stop = this.#clock.schedule(maxMs, () => end.abort())
    const text = await this.#untilSettled(reading, maxMs)
    stop.cancel()
    return { ...response, text }
  }

  /** Runs all pending work, and advances the clock by `ms`. */
  async sleep(ms: number): Promise<void> {
    const end = this.#clock.now() + ms
    await turns()
    while (this.#clock.step(end)) await turns()
  }

  async close(): Promise<void> {
    await this.#server.close()
  }

  /** Waits for the promise, and meanwhile advances the clock by at most `maxAdvance` milliseconds. */
  async #untilSettled<T>(promise: Promise<T>, maxAdvance: number): Promise<T> {
    let settled = false
    const done = () => {
      settled = true
    }
    promise.then(done, done)
    const end = this.#clock.now() + maxAdvance
    await turns()
    while (!settled) {
      this.#clock.step(end)
      await turns()
    }
    return promise
  }
}

async function textOf({ body }: HttpResponse, method: string): Promise<string> {
  if (method === 'HEAD') return ''
  if (typeof body === 'string' || Buffer.isBuffer(body)) return body.toString()
  const parts: Buffer[] = []
  for await (const part of body) parts.push(part)
  return Buffer.concat(parts).toString()
}

/** Yields for ten turns of the event loop, in which work that does not wait for the clock settles. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
}
