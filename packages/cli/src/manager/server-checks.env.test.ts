import { memoryStore } from '@capstan/apiserver'
import { installKinds } from '@capstan/controller'
import { type Client, createClient, type Logger, seededRandom, silent, systemClock } from '@capstan/kube'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { providerAdmission, providerKinds } from '@capstan/lab'
import { afterEach, expect, test } from 'vitest'
import { rejectUnchecked, uncheckedProviders } from './server-checks.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})
const { signal } = new AbortController()

/** Starts a server. `checks`: whether the server itself runs the admission of the providers, as in `capstan up`. */
async function startServer(checks: boolean): Promise<Client> {
  const admission = checks ? providerAdmission() : []
  const io = { clock: systemClock, random: seededRandom(1) }
  const server = createApiServer({ store: memoryStore(), ...io, log: silent, admission })
  await server.ready
  closing.push(() => server.close())
  const client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
  await installKinds(client, [...providerKinds.core, ...providerKinds.local], io)
  return client
}

test.each([
  ['checks', true, []],
  ['does not check', false, ['core', 'local']],
] as const)('recognizes a server that %s the objects of providers', async (_, checks, unchecked) => {
  expect(await uncheckedProviders(await startServer(checks), ['core', 'local'], signal)).toEqual(unchecked)
})

test('reports a provider as unchecked if the server does not have its kinds', async () => {
  const server = createApiServer({ store: memoryStore(), clock: systemClock, random: seededRandom(1), log: silent })
  await server.ready
  closing.push(() => server.close())
  const client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
  expect(await uncheckedProviders(client, ['core'], signal)).toEqual(['core'])
})

test('without admission, rejects the start and names the provider, or warns with --no-webhooks', async () => {
  const client = await startServer(false)
  const warnings: string[] = []
  const log: Logger = { ...silent, warn: (text: string) => void warnings.push(text) }
  const options = { client, providers: ['core'] as const, server: 'https://host:6443', log, signal }
  await expect(rejectUnchecked({ ...options, noWebhooks: false })).rejects.toMatchObject({
    name: 'UsageError',
    message: expect.stringMatching(/^https:\/\/host:6443 does not check objects of core, .*immutable fields can change/),
    hint: expect.stringContaining('--no-webhooks'),
  })
  expect(warnings).toEqual([])
  await rejectUnchecked({ ...options, noWebhooks: true })
  expect(warnings).toEqual(['The API server does not check objects of core, and this manager serves no webhooks'])
})

test('with admission, needs no flag and logs no warning', async () => {
  const warnings: string[] = []
  const log: Logger = { ...silent, warn: (text: string) => void warnings.push(text) }
  const client = await startServer(true)
  await rejectUnchecked({ client, providers: ['core', 'local'], noWebhooks: false, server: 'x', log, signal })
  expect(warnings).toEqual([])
})
