import { X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { hookCatalog } from '@capstan/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { extensionProject, hooksToHandle } from '../scaffold/extension-project.ts'
import { dependencyFrom } from '../scaffold/origin.ts'
import { extensionTemplates } from '../scaffold/templates.ts'
import { runToEnd } from '../test-io.ts'
import { manifestValidator, type ManifestValidator, manifestsIn } from '../test-manifests.ts'

const root = mkdtempSync(join(tmpdir(), 'capstan-new-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const everyHook = hookCatalog.filter(({ singleton }) => !singleton).map(({ name }) => name)
const fileOf = (hook: string): string => hook.replace(/(?<=.)[A-Z]/g, (letter) => `-${letter}`).toLowerCase()
const create = (name: string, ...flags: string[]) => runToEnd(['new', 'extension', name, '--dir', join(root, name), ...flags])

const projectFiles = [
  'package.json',
  'tsconfig.json',
  'extension.ts',
  'extension.test.ts',
  'main.ts',
  'Dockerfile',
  '.dockerignore',
  '.gitignore',
  'README.md',
  'manifests/10-namespace.yaml',
  'manifests/20-service-account.yaml',
  'manifests/30-certificate.yaml',
  'manifests/40-service.yaml',
  'manifests/50-deployment.yaml',
  'manifests/60-extension-config.yaml',
]

test('the templates of an extension have a module for each hook except Discovery, and the other files of a project', () => {
  expect([...extensionTemplates().keys()]).toEqual(
    [
      'Dockerfile',
      'README.md',
      'dockerignore',
      'extension.test.ts',
      'extension.ts',
      'gitignore',
      'before-cluster-create.test.ts',
      ...everyHook.map((hook) => `hooks/${fileOf(hook)}.ts`),
      'main.ts',
      'manifests/10-namespace.yaml',
      'manifests/20-service-account.yaml',
      'manifests/30-certificate.cert-manager.yaml',
      'manifests/30-certificate.self-made.yaml',
      'manifests/40-service.yaml',
      'manifests/50-deployment.yaml',
      'manifests/60-extension-config.yaml',
      'package.json',
      'tsconfig.json',
    ].sort(),
  )
})

test('the template of a project has the dependency versions that this checkout uses', () => {
  const manifestAt = (file: string) =>
    JSON.parse(readFileSync(fileURLToPath(new URL(`../../../../${file}`, import.meta.url)), 'utf8')) as Manifest
  const { devDependencies, optionalDependencies } = JSON.parse(extensionTemplates().get('package.json')!) as Manifest
  const { '@capstan/cli': _cli, '@capstan/testing': _testing, rolldown, ...pinnedDependencies } = devDependencies
  expect(manifestAt('package.json').devDependencies).toMatchObject(pinnedDependencies)
  expect(manifestAt('package.json').optionalDependencies).toEqual(optionalDependencies)
  expect(manifestAt('node_modules/rolldown/package.json').version).toBe(rolldown)
})

interface Manifest {
  readonly version: string
  readonly dependencies: { readonly [name: string]: string }
  readonly devDependencies: { readonly [name: string]: string }
  readonly optionalDependencies: { readonly [name: string]: string }
}

test('a project depends on published versions, and with --link on the folders of the checkout', async () => {
  await create('published')
  expect(readFileSync(join(root, 'published/package.json'), 'utf8')).not.toContain('file:')
  await create('linked', '--link')
  expect(readFileSync(join(root, 'linked/package.json'), 'utf8')).toMatch(/"@capstan\/extension": "file:\//)
})

test('outside of a checkout, a project depends on the versions of this release', () => {
  const [manifestFile] = extensionProject(extensionTemplates(), {
    name: 'quota',
    hooks: hooksToHandle.slice(0, 1),
    certificates: 'cert-manager',
    dependency: dependencyFrom(undefined),
    version: '9.8.7',
  })
  const manifest = JSON.parse(manifestFile!.text) as Manifest
  expect(manifest.dependencies).toEqual({ '@capstan/api': '9.8.7', '@capstan/extension': '9.8.7' })
  expect(Object.values({ ...manifest.devDependencies, ...manifest.optionalDependencies }).join()).not.toMatch(/file:|\{\{/)
})

describe('the command', () => {
  test('prints the written files and the next steps', async () => {
    const { code, out, err } = await create('listed')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const folder = join(root, 'listed')
    const next = [`cd ${folder}`, 'npm install', 'npm test', 'npm run dev'].map((command) => `  ${command}`)
    expect(out.split('\n')).toEqual([...projectFiles.map((file) => join(folder, file)), '', 'Next:', '', ...next])
    expect(
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((file) => statSync(join(folder, file)).isFile())
        .sort(),
    ).toEqual([...projectFiles].sort())
    for (const file of projectFiles) expect(readFileSync(join(folder, file), 'utf8'), file).not.toMatch(/\{\{/)
  })

  test('prints name, folder, files and next steps as JSON', async () => {
    const { code, out } = await create('quota', '--output', 'json')
    expect(code).toBe(0)
    expect(JSON.parse(out)).toEqual({
      name: 'quota',
      folder: join(root, 'quota'),
      files: projectFiles,
      next: [`cd ${join(root, 'quota')}`, 'npm install', 'npm test', 'npm run dev'],
    })
  })

  test('writes handlers for the requested hooks, and the settings that they read', async () => {
    await create('two', '--hook', 'beforeclusterdelete, AfterControlPlaneInitialized')
    const extension = readFileSync(join(root, 'two/extension.ts'), 'utf8')
    expect(extension).toContain('  handlers: [afterControlPlaneInitialized, beforeClusterDelete],\n')
    expect(extension).toMatch(/^import \{ AfterControlPlaneInitialized, BeforeClusterDelete \} from '@capstan\/api'\nimport /)
    expect(readFileSync(join(root, 'two/manifests/60-extension-config.yaml'), 'utf8')).toMatch(
      /^ {2}settings: \{ keepAnnotation: '' \}$/m,
    )
  })

  test('overwrites no file, and names the existing file', async () => {
    const folder = join(root, 'taken')
    mkdirSync(folder)
    writeFileSync(join(folder, 'main.ts'), 'mine')
    writeFileSync(join(folder, 'notes.txt'), 'mine')
    expect(await create('taken')).toEqual({
      code: 1,
      out: '',
      err: `capstan: Cannot write over ${join(folder, 'main.ts')}: nothing has been written`,
    })
    expect(readdirSync(folder)).toEqual(['main.ts', 'notes.txt'])
    expect(readFileSync(join(folder, 'main.ts'), 'utf8')).toBe('mine')
  })

  const label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
  test.each<{ argv: string[]; expectedError: string }>([
    {
      argv: ['Quota'],
      expectedError: `ExtensionConfig.runtime.cluster.x-k8s.io "Quota" is invalid: metadata.name: Invalid value: "Quota": ${label}`,
    },
    {
      argv: ['a.b'],
      expectedError:
        'ExtensionConfig.runtime.cluster.x-k8s.io "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots',
    },
    {
      argv: [''],
      expectedError: `ExtensionConfig.runtime.cluster.x-k8s.io "" is invalid: metadata.name: Invalid value: "": ${label}`,
    },
    { argv: ['../up'], expectedError: `is invalid: metadata.name: Invalid value: "../up": ${label}` },
    {
      argv: ['1st'],
      expectedError: 'Service "1st" is invalid: metadata.name: Invalid value: "1st": a DNS-1035 label must consist of',
    },
    {
      argv: ['a'.repeat(57)],
      expectedError: `Namespace "${'a'.repeat(57)}-system" is invalid: metadata.name: Invalid value: "${'a'.repeat(57)}-system": must be no more than 63 characters`,
    },
    {
      argv: ['quota', '--hook', 'BeforeLunch'],
      expectedError: "'BeforeLunch' is invalid. there is no hook beforelunch: expected BeforeClusterCreate, After",
    },
    { argv: ['quota', '--hook', 'Discovery'], expectedError: 'there is no hook discovery' },
    {
      argv: ['quota', '--hook', 'ValidateTopology'],
      expectedError:
        'ValidateTopology belongs to a patch, and core rejects a patch without a handler of GeneratePatches: add GeneratePatches.',
    },
    { argv: ['quota', '--certificates', 'vault'], expectedError: 'Allowed choices are cert-manager, self-made' },
    { argv: [], expectedError: "missing required argument 'name'" },
  ])('$argv is a usage error', async ({ argv, expectedError }) => {
    const { code, out, err } = await runToEnd(['new', 'extension', ...argv])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(expectedError)
    expect(existsSync('quota')).toBe(false)
  })
})

describe('manifests', () => {
  let validator: ManifestValidator
  beforeAll(async () => {
    validator = await manifestValidator()
  })
  afterAll(() => validator.close())

  test.each(['cert-manager', 'self-made'])('with --certificates %s have no unknown or invalid field', async (certificates) => {
    const name = `m-${certificates}`
    await create(name, '--certificates', certificates, '--hook', everyHook.join(','))
    const namespace = `${name}-system`
    expect(await validator.accept(join(root, name, 'manifests'))).toEqual([
      `Namespace -/${namespace}`,
      `ServiceAccount ${namespace}/${name}`,
      ...(certificates === 'self-made'
        ? [`Secret ${namespace}/${name}-certificate`]
        : [
            `Issuer ${namespace}/${name}-self-signed`,
            `Certificate ${namespace}/${name}-authority`,
            `Issuer ${namespace}/${name}`,
            `Certificate ${namespace}/${name}`,
          ]),
      `Service ${namespace}/${name}`,
      `Deployment ${namespace}/${name}`,
      `ExtensionConfig -/${name}`,
    ])
  })
})

describe('capstan new certificate', () => {
  test('prints a Secret for the extension, and rejects an invalid name', async () => {
    const { code, out } = await runToEnd(['new', 'certificate', 'quota'])
    expect(code).toBe(0)
    expect(parseAllDocuments(out)[0]!.toJS()).toMatchObject({
      kind: 'Secret',
      metadata: { name: 'quota-certificate', namespace: 'quota-system' },
      data: { 'ca.crt': expect.any(String), 'tls.crt': expect.any(String), 'tls.key': expect.any(String) },
    })
    expect((await runToEnd(['new', 'certificate', 'Quota'])).code).toBe(2)
  })

  test('--renew keeps the previous authority in the Secret, but no older one; rejects a missing file and the Secret of another extension', async () => {
    const file = join(root, 'renewed.yaml')
    writeFileSync(file, (await runToEnd(['new', 'certificate', 'quota'])).out, { mode: 0o600 })
    const secret = () => manifestsIn(file)[0] as unknown as { data: { [name: string]: string } }
    const authorities = (name = 'ca.crt') => atob(secret().data[name]!).split(/(?<=-----END CERTIFICATE-----\n)/)
    const createdAuthorities: string[] = [...authorities()]
    for (const _ of [1, 2]) {
      const { code, out } = await runToEnd(['new', 'certificate', 'quota', '--renew', file])
      expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/renewed\.yaml: a new certificate, valid until 20/) })
      const [newAuthority, ...previousAuthorities] = authorities()
      expect(previousAuthorities).toEqual([createdAuthorities.at(-1)])
      expect(new X509Certificate(atob(secret().data['tls.crt']!)).verify(new X509Certificate(newAuthority!).publicKey)).toBe(true)
      createdAuthorities.push(newAuthority!)
    }
    expect(new Set(createdAuthorities).size).toBe(3)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    for (const [name, path, expectedError] of [
      ['quota', join(root, 'absent.yaml'), 'there is no such file'],
      ['other', file, 'expected the Secret other-certificate'],
    ] as const)
      expect(await runToEnd(['new', 'certificate', name, '--renew', path])).toMatchObject({
        code: 2,
        err: expect.stringContaining(expectedError),
      })
  })
})

describe('a provider', () => {
  const provider = (name: string, ...flags: string[]) =>
    runToEnd(['new', 'provider', name, '--dir', join(root, `p-${name}`), ...flags])
  const read = (name: string, file: string) => readFileSync(join(root, `p-${name}`, file), 'utf8')

  test('has only the requested kinds', async () => {
    expect((await provider('my-cloud', '--kinds', 'machine,cluster,machinepool')).code).toBe(0)
    const folder = join(root, 'p-my-cloud')
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const paths = files.map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    expect(paths).toContain('machine-pool.ts')
    expect(paths).toContain('.gitignore')
    expect(paths).not.toContain('control-plane.ts')
    for (const path of paths) expect(read('my-cloud', path)).not.toMatch(/sample|\{\{|ControlPlane,/i)
    expect(read('my-cloud', 'machine-pool.ts')).toContain("plural: 'mycloudmachinepools'")
    expect(read('my-cloud', 'manifests/20-access.yaml')).toContain('infrastructure.my-cloud.example.com')
  })

  test('has its API groups below the domain', async () => {
    expect((await provider('dom', '--domain', 'acme.io')).code).toBe(0)
    expect(read('dom', 'cluster.ts')).toContain("group: 'infrastructure.acme.io'")
  })

  test.each([
    ['one', ['--kinds', 'cluster,nothing'], 'there is no kind nothing: expected cluster, machine, machinepool, controlplane'],
    ['two', ['--kinds', 'machine'], 'an infrastructure provider needs the kind cluster: add it'],
    ['three', ['--domain', 'a b'], '--domain a b: expected a DNS name'],
    ['9lives', [], 'must begin with a letter'],
    ['Four', [], 'metadata.name'],
  ])('%s with %j is rejected', async (name, flags, message) => {
    const { code, err } = await provider(name, ...flags)
    expect(err).toContain(message)
    expect(code).toBe(2)
  })
})
