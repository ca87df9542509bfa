import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDurable } from '@capstan/apiserver'
import { type KubeObject, systemClock } from '@capstan/kube'
import { afterAll, describe, expect, test } from 'vitest'
import { commandNames } from './program.ts'
import { runToEnd } from './test-io.ts'
import { versions } from './versions.ts'

const folder = mkdtempSync(join(tmpdir(), 'capstan-cli-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('help', () => {
  test('names every command', async () => {
    const { code, out, err } = await runToEnd(['help'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    for (const command of commandNames) expect(out).toMatch(new RegExp(`^  ${command} `, 'm'))
  })

  test.each(commandNames)('of %s shows the usage of the command', async (command) => {
    const { code, out } = await runToEnd([command, '--help'])
    expect(code).toBe(0)
    expect(out).toContain(`Usage: capstan ${command}`)
  })

  test('is printed without a command, as an error', async () => {
    const { code, out, err } = await runToEnd([])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain('Usage: capstan')
  })
})

describe('invalid use exits with 2 and names the problem', () => {
  test.each<{ argv: string[]; expectedError: RegExp }>([
    { argv: ['dwon'], expectedError: /unknown command 'dwon'/ },
    { argv: ['upp'], expectedError: /Did you mean up\?/ },
    { argv: ['up', '--demmo'], expectedError: /unknown option '--demmo'[^]*Did you mean --demo\?/ },
    { argv: ['up', 'extra'], expectedError: /too many arguments for 'up'/ },
    {
      argv: ['up', '--port', 'eighty'],
      expectedError: /--port <n>' argument 'eighty' is invalid\. expected a port from 0 to 65535/,
    },
    { argv: ['up', '--port', '65536'], expectedError: /'65536' is invalid/ },
    { argv: ['up', '--port', '-1'], expectedError: /'-1' is invalid|unknown option/ },
    { argv: ['up', '-o', 'yaml'], expectedError: /'yaml' is invalid\. Allowed choices are text, json/ },
    {
      argv: ['up', '--demo', '--exit-when-ready', '--timeout', 'soon'],
      expectedError: /'soon' is invalid\. expected a duration/,
    },
    { argv: ['up', '--exit-when-ready'], expectedError: /--exit-when-ready waits for the cluster of --demo/ },
    { argv: ['up', '--memory', '--data', 'x'], expectedError: /--memory' cannot be used with option '--data/ },
    {
      argv: ['apiserver', '--tls-cert-file', 'a.pem'],
      expectedError: /--tls-cert-file and --tls-private-key-file must be given together/,
    },
    {
      argv: ['apiserver', '--authorization-mode', 'Node,Webhook'],
      expectedError: /Webhook is not supported; use AlwaysAllow, AlwaysDeny, Node, RBAC/,
    },
    { argv: ['apiserver', '--authorization-mode', 'RBAC,RBAC'], expectedError: /"RBAC" has mode specified more than once/ },
    { argv: ['apiserver', '--authorization-mode', 'rbac'], expectedError: /authorization-mode "rbac" is not a valid mode/ },
    {
      argv: ['apiserver', '--disable-admission-plugins', 'Nope'],
      expectedError: /disable-admission-plugins plugin "Nope" is unknown/,
    },
    { argv: ['apiserver', '--enable-admission-plugins', 'EventRateLimit'], expectedError: /EventRateLimit is not supported/ },
    { argv: ['apiserver', '--controllers', '*,-job'], expectedError: /"-job" is not in the list of known controllers/ },
    { argv: ['apiserver', '--anonymous-auth=perhaps'], expectedError: /expected true or false/ },
    {
      argv: ['apiserver', '--oidc-issuer-url', 'x'],
      expectedError: /--oidc-issuer-url is not supported: users authenticate with/,
    },
    { argv: ['apiserver', '--insecure-port', '0'], expectedError: /unknown option '--insecure-port'/ },
    { argv: ['apiserver', '--secure-port', 'x'], expectedError: /--secure-port <n>' argument 'x' is invalid/ },
    { argv: ['manager'], expectedError: /no management cluster is named/ },
    {
      argv: ['manager', '--kubeconfig', 'k', '--providers', 'core,aws'],
      expectedError: /there is no provider aws: expected core, local/,
    },
    { argv: ['kubeconfig'], expectedError: /missing required argument 'name'/ },
    { argv: ['hooks', 'call', 'https://x'], expectedError: /missing required argument 'hook'/ },
    { argv: ['new', 'cluster'], expectedError: /unknown command 'cluster'/ },
  ])('$argv', async ({ argv, expectedError }) => {
    const { code, out, err } = await runToEnd(argv)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(expectedError)
  })
})

describe('version', () => {
  test('is printed as text', async () => {
    const { out } = await runToEnd(['version'])
    expect(out).toMatch(/^capstan: \d+\.\d+\.\d+\nkubernetes: v1\.36\nclusterAPI: v1\.14\ncontract: v1beta2\nnode: v\d+/)
  })

  test('is printed as JSON', async () => {
    const { code, out } = await runToEnd(['version', '-o', 'json'])
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ kubernetes: 'v1.36', clusterAPI: 'v1.14', contract: 'v1beta2' })
  })
})

describe('backup and restore', () => {
  const data = join(folder, 'data')
  const file = join(folder, 'state.backup')

  test('save the state of a data folder to a file, check the file, and replace existing state only with --force', async () => {
    const stores = await openDurable(join(data, 'db'), { clock: systemClock })
    const store = await stores.store('management')
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } } as unknown as KubeObject
    await store.commit({ key: { resource: 'configmaps', namespace: 'default', name: 'a' }, previous: undefined, object })
    const backup = await runToEnd(['backup', file, '--data', data])
    expect(backup).toMatchObject({ code: 0, err: '' })
    expect(backup.out).toMatch(/^Backed up to .*state\.backup: 1 objects of 1 store as of .*, format 2$/)
    await stores.close()

    const checked = await runToEnd(['backup', 'check', file])
    expect(checked.out).toMatch(/ is intact: [^]*\n {2}store management: 1 objects, revision 1$/)
    const rejected = await runToEnd(['restore', file, '--data', data])
    expect(rejected.code).toBe(1)
    expect(rejected.err).toMatch(
      /Cannot restore .*: Data folder .* holds data already: nothing has been changed\. --force replaces it$/,
    )
    const restored = await runToEnd(['restore', file, '--data', data, '--force'])
    expect(restored).toMatchObject({ code: 0, err: '' })
    expect(restored.out).toMatch(/; revisions continue 1000000000 higher$/)
  })

  test('report an unusable file or folder', async () => {
    writeFileSync(file, 'something else')
    for (const argv of [
      ['backup', 'check', file],
      ['restore', file, '--data', join(folder, 'other')],
    ])
      expect(await runToEnd(argv)).toMatchObject({ code: 1, err: expect.stringContaining(`${file} is not a backup of Capstan`) })
    const missing = await runToEnd(['backup', file, '--data', join(folder, 'none')])
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining('There is no state in data folder') })
  })
})

describe('kubeconfig', () => {
  const missing = join(folder, 'nowhere')
  const broken = join(folder, 'broken')
  writeFileSync(broken, 'apiVersion: v1\nkind: Config\n')

  test.each<{ name: string; argv: string[]; env: { KUBECONFIG?: string }; exitCode: number; expectedError: RegExp }>([
    {
      name: 'a missing file',
      argv: ['--kubeconfig', missing],
      env: {},
      exitCode: 2,
      expectedError: /nowhere\nName the management/,
    },
    {
      name: 'a missing file of $KUBECONFIG',
      argv: [],
      env: { KUBECONFIG: missing },
      exitCode: 2,
      expectedError: /nowhere\nName/,
    },
    {
      name: 'a kubeconfig without a current context',
      argv: ['--kubeconfig', broken],
      env: {},
      exitCode: 1,
      expectedError: /^.*broken.*current-context.*$/,
    },
  ])('with $name, the command exits with $exitCode and a message', async ({ argv, env, exitCode, expectedError }) => {
    const { code, out, err } = await runToEnd(['kubeconfig', 'demo', ...argv], env)
    expect({ code, out }).toEqual({ code: exitCode, out: '' })
    expect(err).toMatch(expectedError)
  })
})

describe('a command with an unusable file or folder exits with 1 and a message that names its path', () => {
  const missing = join(folder, 'missing.pem')
  const text = join(folder, 'text.pem')
  writeFileSync(text, 'hello\n')
  const serve = ['apiserver', '--secure-port', '0']

  test.each<{ argv: string[]; expectedError: RegExp }>([
    {
      argv: [...serve, '--tls-cert-file', missing, '--tls-private-key-file', text],
      expectedError: /Cannot read --tls-cert-file .*missing\.pem: ENOENT/,
    },
    {
      argv: [...serve, '--tls-cert-file', text, '--tls-private-key-file', text],
      expectedError: /Cannot read --tls-cert-file .*text\.pem: expected certificates in PEM/,
    },
    {
      argv: [...serve, '--client-ca-file', text],
      expectedError: /Cannot read --client-ca-file .*text\.pem: expected certificates in PEM/,
    },
    {
      argv: [...serve, '--root-ca-file', text],
      expectedError: /Cannot read --root-ca-file .*text\.pem: expected certificates in PEM/,
    },
    {
      argv: [...serve, '--token-auth-file', text],
      expectedError: /Cannot read --token-auth-file .*text\.pem: .*line 1 must have at least 3 columns/,
    },
    { argv: [...serve, '--kubeconfig', join(text, 'k')], expectedError: /Cannot write kubeconfig .*text\.pem\/k: E/ },
    {
      argv: ['up', '--memory', '--port', '0', '--kubeconfig', join(text, 'k')],
      expectedError: /Cannot write kubeconfig .*text\.pem\/k: E/,
    },
    { argv: ['up', '--data', text, '--port', '0'], expectedError: /Cannot open data folder .*text\.pem\/db: ENOTDIR/ },
    { argv: ['up', '--data', '/proc/x', '--port', '0'], expectedError: /^capstan: Cannot open data folder \/proc\/x\/db: E.*$/ },
    { argv: [...serve, '--data', '/proc/x'], expectedError: /^capstan: Cannot open data folder \/proc\/x\/(?:db|pki): E.*$/ },
    { argv: ['manager', '--kubeconfig', missing], expectedError: /missing\.pem/ },
  ])('$argv', async ({ argv, expectedError }) => {
    const { code, out, err } = await runToEnd(argv)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(expectedError)
  })
})

test('--version prints only the version', async () =>
  expect(await runToEnd(['--version'])).toEqual({ code: 0, out: versions.capstan, err: '' }))

test.each([
  [['up', '--prot', '3'], "error: unknown option '--prot'\n(Did you mean --port?)\nRun capstan up --help for its flags."],
  [['hooks', 'waitin'], "error: unknown command 'waitin'\n(Did you mean waiting?)\nRun capstan hooks --help for its flags."],
])('a usage error names the help command of the subcommand: %j', async (argv, err) =>
  expect(await runToEnd(argv)).toEqual({ code: 2, out: '', err }),
)

test('help shows durations with units', async () => {
  const { out } = await runToEnd(['apiserver', '--help'])
  expect(out).toMatch(/--event-ttl.*\(default: 1h\)/)
  expect(out).toMatch(/--etcd-compaction-interval.*\(default: 5m\)/)
})

test.each(['up', 'apiserver', 'dev', 'backup x', 'restore x'])('%s rejects an empty --data', async (command) =>
  expect(await runToEnd([...command.split(' '), '--data', ''])).toMatchObject({
    code: 2,
    err: expect.stringContaining("option '--data <dir>' argument '' is invalid. expected a folder."),
  }),
)
