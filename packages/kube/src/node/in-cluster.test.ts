import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { inClusterAccess, isInCluster } from './in-cluster.ts'

const folder = mkdtempSync(join(tmpdir(), 'capstan-in-cluster-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const mount = (files: { [name: string]: string }): string => {
  const mountFolder = mkdtempSync(join(folder, 'mount-'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(mountFolder, name), text)
  return mountFolder
}
const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }

test('a pod gets its access from the environment and the files of its service account', async () => {
  const mounted = mount({ token: 'secret-token\n', 'ca.crt': 'PEM', namespace: 'capi-system\n' })
  expect(await inClusterAccess(env, mounted)).toEqual({
    server: 'https://10.0.0.1:443',
    ca: 'PEM',
    tokenFile: join(mounted, 'token'),
    namespace: 'capi-system',
  })
})

test('an IPv6 host gets brackets, and a missing namespace is omitted', async () => {
  const access = await inClusterAccess({ ...env, KUBERNETES_SERVICE_HOST: 'fd00::1' }, mount({ token: 't', 'ca.crt': 'PEM' }))
  expect(access.server).toBe('https://[fd00::1]:443')
  expect(access).not.toHaveProperty('namespace')
})

test.each([
  [{}, { token: 'very-secret', 'ca.crt': 'PEM' }, /KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined$/],
  [{ ...env, KUBERNETES_SERVICE_PORT: '' }, { token: 'very-secret', 'ca.crt': 'PEM' }, /must be defined$/],
  [env, { 'ca.crt': 'PEM' }, /token: there is no such file$/],
  [env, { token: ' \n', 'ca.crt': 'PEM' }, /token is empty$/],
  [env, { token: 'very-secret' }, /ca\.crt: there is no such file$/],
])('environment %j with files %j is rejected, with an error that does not contain the token', async (env, files, message) => {
  const rejected = inClusterAccess(env, mount(files as { [name: string]: string }))
  await expect(rejected).rejects.toThrow(message)
  await expect(rejected).rejects.not.toThrow(/very-secret/)
})

test('isInCluster requires both KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT', () => {
  expect(isInCluster(env)).toBe(true)
  expect([{ KUBERNETES_SERVICE_HOST: 'x' }, { KUBERNETES_SERVICE_PORT: '443' }].map(isInCluster)).toEqual([false, false])
})
