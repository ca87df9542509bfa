/**
 * Sends recorded requests, and compares the responses with the recorded ones of a real kube-apiserver v1.36.2. Compared are the status code,
 * and the warnings if they were recorded. Of an error, also the reason is compared, and the causes in any order; without causes, the message.
 * The requests of each file of `testdata/recorded` are sent to a fresh server.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { seededRandom, seconds, VirtualClock } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { quiet } from '@capstan/kubernetes-kinds/test-server'
import { createHandler } from './handler.ts'
import { webHandler } from './web.ts'

interface Recorded {
  readonly name: string
  readonly request: {
    readonly method: string
    readonly path: string
    readonly body?: unknown
    readonly headers?: { readonly [name: string]: string }
  }
  readonly answer: {
    readonly status: number
    readonly reason?: string
    readonly message?: string
    readonly causes?: readonly string[]
    /** The header `Warning`. */
    readonly warnings?: string
  }
}

interface StatusBody {
  readonly kind?: string
  readonly reason?: string
  readonly message?: string
  readonly details?: { readonly causes?: readonly { readonly field?: string; readonly message?: string }[] }
}

const folder = new URL('../../testdata/recorded/', import.meta.url)
const administrator = { kind: 'user', name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] } as const

describe.each(readdirSync(folder))('%s', (file) => {
  test('every request gets the recorded response', async () => {
    const clock = new VirtualClock()
    const server = createApiServer({
      clock,
      random: seededRandom(1),
      authorization: ['RBAC'],
      controllers: { serviceAccounts: true, rootCA: 'PEM' },
    })
    await server.ready
    const handle = webHandler(createHandler({ engine: server.engine, clock, issuer: server.issuer }))
    const steps = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as readonly Recorded[]
    for (const { name, request, answer } of steps) {
      const { method, path, body, headers } = request
      const response = await handle(
        new Request(`https://server${path}`, {
          method,
          headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
          ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        }),
        administrator,
      )
      const text = await response.text()
      const { kind, reason, message, details } = (text.startsWith('{') ? JSON.parse(text) : {}) as StatusBody
      const causes = details?.causes?.map((cause) => `${cause.field ?? ''}: ${cause.message}`).sort()
      const error = kind === 'Status' ? { reason, ...(causes ? { causes } : { message }) } : {}
      const warnings = answer.warnings === undefined ? {} : { warnings: response.headers.get('warning') }
      expect({ name, status: response.status, ...error, ...warnings }).toEqual({ name, ...answer })
      await quiet()
      clock.step(clock.now() + seconds(1))
      await quiet()
    }
    await server.close()
  })
})
