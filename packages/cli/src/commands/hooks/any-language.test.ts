/** Runs the server and the commands of docs/guides/hooks-in-any-language.md, and compares their output with the page. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import {
  BeforeClusterUpgrade,
  createCatalog,
  DiscoverVariables,
  ExtensionConfig,
  GeneratePatches,
  hookCatalog,
  hookPath,
} from '@capstan/api'
import { callServer, createExtensionClient, fixture, httpsHookTransport } from '@capstan/extension'
import { silent, structural, systemClock } from '@capstan/kube'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { parse } from 'yaml'
import { runToEnd } from '../../test-io.ts'

const root = fileURLToPath(new URL('../../../../../', import.meta.url))
const page = readFileSync(`${root}docs/guides/hooks-in-any-language.md`, 'utf8')
const block = (language: string): string => page.split(`\`\`\`${language}\n`)[1]!.split('```')[0]!

test('the ExtensionConfig of the page is valid', () => {
  expect(structural(ExtensionConfig.schema).validate(parse(block('yaml')))).toEqual([])
})

test('the targets of all relative links in the page exist', () => {
  for (const [, link] of page.matchAll(/\]\((\.[^)]+)\)/g))
    expect(readFileSync(new URL(link!, `file://${root}docs/guides/`))).toBeTruthy()
})

const missing = ['python3', 'openssl'].filter(
  (program) => spawnSync(program, [program === 'openssl' ? 'version' : '--version']).status !== 0,
)

describe.skipIf(missing.length > 0)(
  `the server in Python${missing.map((program) => ` (not run: ${program} is not installed)`).join('')}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'any-language-'))
    const [certify, serve] = block('sh')
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
    const makeCertificate = () => execFileSync(certify![0]!, certify!.slice(1), { cwd: folder, stdio: 'ignore' })
    const ca = () => readFileSync(join(folder, 'tls.crt'), 'utf8')
    let child: ChildProcess
    let url: string

    beforeAll(async () => {
      writeFileSync(join(folder, 'extension.py'), block('python'))
      makeCertificate()
      child = spawn(serve![0]!, [...serve!.slice(1, -1), '0'], { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] })
      ;[url] = (await once(createInterface({ input: child.stdout! }), 'line')) as [string]
    })
    afterAll(() => {
      child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    })

    it('responds so that the commands of the page print the output in the page', async () => {
      const withoutTimes = (text: string) => text.replace(/after \d+ ms/g, 'after N ms').trim()
      const printed: string[] = []
      for (const [, command] of block('console').matchAll(/^\$ (.*)$/gm)) {
        const argv = command!
          .replace('https://localhost:9443', url)
          .replace('tls.crt', join(folder, 'tls.crt'))
          .replace('packages/', `${root}packages/`)
        const { out, err } = await runToEnd(argv.split(' ').slice(1))
        printed.push(`$ ${command}`, ...[out, err].filter((text) => text !== ''))
      }
      expect(withoutTimes(printed.join('\n'))).toBe(withoutTimes(block('console')))
    })

    const clientOf = async () => {
      const client = createExtensionClient({
        transport: httpsHookTransport(),
        catalog: createCatalog(hookCatalog),
        clock: systemClock,
        log: silent,
        namespaceLabels: async () => ({}),
      })
      const config = {
        metadata: { name: 'approval' },
        spec: { clientConfig: { url, caBundle: btoa(ca()) }, namespaceSelector: {} },
      } as ExtensionConfig
      client.warmUp([{ ...config, status: { handlers: await client.discover(config) } }])
      return client
    }

    it('gives equal concurrent calls the same response, blocks an upgrade until it is approved, and declares the variable region', async () => {
      const client = await clientOf()
      const request = fixture(BeforeClusterUpgrade)
      const callHook = () => client.callAll(BeforeClusterUpgrade, request.cluster, request)
      const responses = await Promise.all(Array.from({ length: 30 }, callHook))
      expect(new Set(responses.map((response) => JSON.stringify(response))).size).toBe(1)
      expect(responses[0]).toMatchObject({ retryAfterSeconds: 60 })
      request.cluster.metadata.annotations = { 'example.com/approved-version': 'v1.35.0' }
      expect(await callHook()).toEqual({ status: 'Success', retryAfterSeconds: 0 })
      const variables = await client.call(DiscoverVariables, request.cluster, 'discover-variables.approval', {})
      expect(variables.variables).toMatchObject([{ name: 'region', required: true }])
      client.close()
    })

    it('prefers the variables of an item to those of the request, and reports a missing variable', async () => {
      const transport = httpsHookTransport()
      const server = { url, caBundle: btoa(ca()) }
      const callHook = async (request: object) =>
        (await callServer(GeneratePatches, { server, request, timeoutSeconds: 10, transport, clock: systemClock })).response
      const request = fixture(GeneratePatches)
      request.items[1]!.variables!.push({ name: 'region', value: 'us1' })
      const { items } = (await callHook(request)) as { items: [{ patch: string }] }
      expect(JSON.parse(atob(items[0].patch))).toEqual({ metadata: { labels: { region: 'us1', pool: 'md-0' } } })
      expect(await callHook({ ...fixture(GeneratePatches), variables: [] })).toMatchObject({
        status: 'Failure',
        message: "KeyError: 'region'",
      })
      transport.close()
    })

    it('returns a failure for an invalid request, and 404 for an unknown path', async () => {
      const transport = httpsHookTransport()
      const post = async (path: string, body: string) => {
        const response = await transport.post({ url: new URL(path, url), ca: ca() }, body, AbortSignal.timeout(60_000))
        return [response.status, await new Response(response.body as never).text()]
      }
      const path = hookPath(BeforeClusterUpgrade, 'wait-for-approval')
      expect(await post(path, '{')).toEqual([200, expect.stringMatching(/^\{"status": "Failure", "message": "JSONDecodeError: /)])
      expect(await post(path, '{}')).toEqual([200, `{"status": "Failure", "message": "KeyError: 'toKubernetesVersion'"}`])
      expect(await post(`${path}/`, '{}')).toEqual([404, '{"message": "no such handler"}'])
      transport.close()
    })

    it('serves a renewed certificate without a restart', async () => {
      const before = ca()
      makeCertificate()
      expect(ca()).not.toBe(before)
      const client = await clientOf()
      client.close()
    })

    it('exits with 0 on SIGTERM', async () => {
      child.kill('SIGTERM')
      expect(await once(child, 'exit')).toEqual([0, null])
    })
  },
)
