import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { formatKubeconfig, kubeconfigFor, loadKubeconfig, parseKubeconfig, resolveKubeconfig } from './kubeconfig.ts'

const access = {
  server: 'https://127.0.0.1:6443',
  ca: 'CA',
  servername: 'demo.default',
  certificate: 'CERT',
  key: 'KEY',
  namespace: 'team',
}

test('parsing a formatted kubeconfig returns the same access', async () => {
  expect(await resolveKubeconfig(parseKubeconfig(formatKubeconfig(kubeconfigFor('demo', access))))).toEqual(access)
})

test('relative paths start at the folder of the kubeconfig, and a token file takes precedence over a token', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kubeconfig-'))
  try {
    await writeFile(join(folder, 'ca.crt'), 'THE CA')
    const config = kubeconfigFor('demo', { server: 'https://host/', token: 'inline' })
    config.clusters[0]!.cluster['certificate-authority'] = 'ca.crt'
    config.users[0]!.user.tokenFile = 'token'
    await writeFile(join(folder, 'config'), formatKubeconfig(config))
    expect(await loadKubeconfig(join(folder, 'config'))).toEqual({
      server: 'https://host',
      ca: 'THE CA',
      tokenFile: join(folder, 'token'),
    })
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('the error for a missing kubeconfig names the file', async () => {
  await expect(loadKubeconfig('/capstan-test/absent')).rejects.toThrow(
    /^Cannot read kubeconfig \/capstan-test\/absent: there is no such file$/,
  )
})

test('of entries with equal names in several kubeconfigs, the first takes effect; relative paths start at the folder of their file; an error names the invalid file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kubeconfigs-'))
  try {
    const first = kubeconfigFor('shared', { server: 'https://first' })
    const second = kubeconfigFor('shared', { server: 'https://second', token: 'second' })
    second.contexts.push({ name: 'more', context: { cluster: 'shared', user: 'own' } })
    second.users.push({ name: 'own', user: { tokenFile: 'token' } })
    second['current-context'] = 'more'
    await mkdir(join(folder, 'two'))
    await writeFile(join(folder, 'one'), formatKubeconfig({ ...first, 'current-context': '' }))
    await writeFile(join(folder, 'two/config'), formatKubeconfig(second))
    const paths = [join(folder, 'absent'), join(folder, 'one'), join(folder, 'two/config')]
    // Entries are not merged: the user "shared" of the first file has no token.
    expect(await loadKubeconfig(paths, { context: 'shared' })).toEqual({ server: 'https://first' })
    expect(await loadKubeconfig(paths)).toEqual({ server: 'https://first', tokenFile: join(folder, 'two/token') })
    await writeFile(join(folder, 'two/config'), 'a: [secret')
    await expect(loadKubeconfig(paths)).rejects.toThrow(/two\/config: Cannot read kubeconfig: it is not YAML/)
  } finally {
    await rm(folder, { recursive: true })
  }
})

const kubeconfigText = (user: object, cluster: object = {}, fields: object = {}) =>
  JSON.stringify({
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://h', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
    ...fields,
  })

test.each([
  ['a user with an exec plug-in', kubeconfigText({ exec: { command: 'aws' } }), /user "u" uses an exec credential plug-in/],
  ['a user with an auth provider', kubeconfigText({ 'auth-provider': { name: 'gcp' } }), /user "u" uses an auth-provider/],
  ['impersonation', kubeconfigText({ token: 'secret', as: 'jane' }), /user "u" uses impersonation \(as\)/],
  ['impersonated groups', kubeconfigText({ 'as-groups': ['viewers'] }), /user "u" uses impersonation \(as-groups\)/],
  ['a proxy', kubeconfigText({}, { 'proxy-url': 'http://p' }), /cluster "c" uses proxy-url/],
  ['insecure-skip-tls-verify', kubeconfigText({}, { 'insecure-skip-tls-verify': true }), /insecure-skip-tls-verify/],
  ['plain http', kubeconfigText({}, { server: 'http://h' }), /must be an https URL/],
  ['a missing server', kubeconfigText({}, { server: undefined }), /has no server URL/],
  ['a context that does not exist', kubeconfigText({}, {}, { 'current-context': 'y' }), /context "y" does not exist/],
  ['a cluster that does not exist', kubeconfigText({}, {}, { clusters: [] }), /cluster "c" does not exist/],
  ['a missing current-context', kubeconfigText({}, {}, { 'current-context': '' }), /no current-context/],
  ['a kind other than Config', '{"kind":"Pod"}', /kind must be Config/],
  ['text that is not a mapping', 'just text', /expected a mapping/],
  ['text that is not YAML', 'a: [secret', /not YAML/],
])('%s is rejected with an error that names the problem and quotes no secret', async (_, text, message) => {
  const attempt = (async () => resolveKubeconfig(parseKubeconfig(text)))()
  await expect(attempt).rejects.toThrow(message)
  await expect(attempt).rejects.not.toThrow(/secret/)
})

test('parsing an invalid kubeconfig prints no warnings, which would quote its secrets', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
  try {
    expect(() => parseKubeconfig('? {token: secret}\n: x\n&a: b')).toThrow('kubeconfig')
    expect(warned).not.toHaveBeenCalled()
  } finally {
    warned.mockRestore()
  }
})

test('of several equal keys, the last one takes effect', () => {
  const text = formatKubeconfig(kubeconfigFor('demo', access))
  expect(parseKubeconfig(`${text}current-context: other\n`)['current-context']).toBe('other')
})

test('insecure-skip-tls-verify is accepted when allowed', async () => {
  const config = parseKubeconfig(kubeconfigText({ token: 't' }, { 'insecure-skip-tls-verify': true }))
  expect(await resolveKubeconfig(config, { allowInsecure: true })).toEqual({ server: 'https://h', token: 't', insecure: true })
})
