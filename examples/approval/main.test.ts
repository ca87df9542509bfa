import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { BeforeClusterUpgrade } from '@capstan/api'
import { callServer, fixture, httpsHookTransport } from '@capstan/extension'
import { systemClock } from '@capstan/kube'
import { expect, it } from 'vitest'

const program = fileURLToPath(new URL('main.ts', import.meta.url))
const source = readFileSync(program, 'utf8')

it('the program is a complete extension in under 15 lines, and equals the program in the README of packages/extension', () => {
  expect(source.trimEnd().split('\n').length).toBeLessThan(15)
  const readme = readFileSync(new URL('../../packages/extension/README.md', import.meta.url), 'utf8')
  expect(readme.split('```ts\n')[1]!.split('```')[0]).toBe(source)
})

it('the program blocks an upgrade until its version is approved', async () => {
  const child = spawn(process.execPath, [program, '--dev', '--health-addr', '0', '--diagnostics-address', '0'])
  try {
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
    const transport = httpsHookTransport()
    const responseTo = async (annotations: Record<string, string>) => {
      const request = fixture(BeforeClusterUpgrade)
      request.cluster.metadata.annotations = annotations
      const call = { server: JSON.parse(line), request, timeoutSeconds: 10, transport, clock: systemClock }
      return (await callServer(BeforeClusterUpgrade, call)).response
    }
    const message = 'Upgrade to v1.35.0 waits for approval'
    expect(await responseTo({})).toMatchObject({ status: 'Success', retryAfterSeconds: 60, message })
    expect(await responseTo({ 'example.com/approved-version': 'v1.34.0' })).toMatchObject({ retryAfterSeconds: 60, message })
    expect(await responseTo({ 'example.com/approved-version': 'v1.35.0' })).toMatchObject({
      status: 'Success',
      retryAfterSeconds: 0,
    })
    transport.close()
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  } finally {
    child.kill('SIGKILL')
  }
})
