/** Creates the files of a new extension project. Pure. */
import type { Hook } from '@capstan/api'
import { hookCatalog } from '@capstan/api'
import { dns1035LabelProblems, dnsLabelProblems, invalid, invalidObject } from '@capstan/kube'
import type { ServiceCertificate } from './certificate.ts'
import { mergeModules } from './merge-modules.ts'
import { fillPlaceholders, type Templates } from './templates.ts'

export interface NewExtension {
  readonly name: string
  readonly hooks: readonly Hook[]
  /** `cert-manager` if it issues the certificate, otherwise the certificate that Capstan has made. */
  readonly certificates: 'cert-manager' | ServiceCertificate
  /** Returns the version or location of a package for package.json; `undefined` removes the dependency. */
  dependency(name: string, version: string): string | undefined
  /** Version of Capstan. */
  readonly version: string
}

export interface ProjectFile {
  readonly path: string
  readonly text: string
  /** Whether only the owner can read the file. */
  readonly secret?: true
}

export const namespaceOf = (name: string): string => `${name}-system`

/** Hooks that an extension can handle: all except Discovery, which the extension server handles itself. */
export const hooksToHandle: readonly Hook[] = hookCatalog.filter(({ singleton }) => !singleton)

/**
 * Validates the name of an extension.
 *
 * @throws StatusError Invalid, in the form of the API server's errors, when the ExtensionConfig or the Namespace of the project would have
 * an invalid name, or when an ExtensionConfig could not refer to the Service
 */
export function checkName(name: string): void {
  const objects = [
    { group: 'runtime.cluster.x-k8s.io', kind: 'ExtensionConfig', name, problems: dnsLabelProblems(name) },
    { group: '', kind: 'Service', name, problems: dns1035LabelProblems(name) },
    { group: '', kind: 'Namespace', name: namespaceOf(name), problems: dnsLabelProblems(namespaceOf(name)) },
  ]
  for (const { problems, ...object } of objects) {
    const errors = problems.map((problem) => invalid('metadata.name', object.name, problem))
    if (errors.length > 0) throw invalidObject(object, object.name, errors)
  }
}

/** Returns the files of the project, made from the templates. */
export function extensionProject(templates: Templates, extension: NewExtension): ProjectFile[] {
  const { name, hooks, certificates, version } = extension
  const isSelfMade = certificates !== 'cert-manager'
  const read = (file: string): string => {
    const text = templates.get(file)
    if (text === undefined) throw new Error(`There is no template ${file}`)
    return text
  }
  const modules = hooks.map((hook) => read(`hooks/${fileNameOf(hook)}.ts`))
  const tests = hooks.flatMap((hook) => templates.get(`${fileNameOf(hook)}.test.ts`) ?? [])
  const settings = modules.flatMap(settingsReadBy).map((setting) => `${setting}: ''`)
  const values = {
    name,
    namespace: namespaceOf(name),
    version,
    settings: settings.length === 0 ? '{}' : `{ ${settings.join(', ')} }`,
    ...(isSelfMade ? certificates : {}),
  }
  const file = (path: string, text = read(path)): ProjectFile => ({ path, text: fillPlaceholders(text, values) })
  const certificate = read(`manifests/30-certificate.${isSelfMade ? 'self-made' : 'cert-manager'}.yaml`)

  return [
    { path: 'package.json', text: withDependencies(file('package.json').text, extension) },
    file('tsconfig.json'),
    file('extension.ts', mergeModules([...modules.map(withoutExport), withHandlers(read('extension.ts'), modules)])),
    file('extension.test.ts', mergeModules([read('extension.test.ts'), ...tests])),
    file('main.ts'),
    file('Dockerfile'),
    file('.dockerignore', read('dockerignore')),
    file('.gitignore', `${read('gitignore')}${isSelfMade ? 'manifests/30-certificate.yaml\n' : ''}`),
    file('README.md'),
    file('manifests/10-namespace.yaml'),
    file('manifests/20-service-account.yaml'),
    { ...file('manifests/30-certificate.yaml', certificate), ...(isSelfMade ? { secret: true } : {}) },
    file('manifests/40-service.yaml'),
    file('manifests/50-deployment.yaml'),
    file('manifests/60-extension-config.yaml'),
  ]
}

/** Returns `before-cluster-create` for BeforeClusterCreate. */
const fileNameOf = ({ name }: Hook): string => name.replace(/(?<=.)[A-Z]/g, (letter) => `-${letter}`).toLowerCase()

const declaration = /^export const (\w+) = /m

/** Removes `export` from a handler that is in the same file as the extension. */
const withoutExport = (module: string): string => module.replace(declaration, 'const $1 = ')

function withHandlers(extension: string, modules: readonly string[]): string {
  const handlers = modules.map((module) => declaration.exec(module)![1]!)
  const line = `handlers: [${handlers.join(', ')}]`
  return extension.replace('handlers: []', line.length < 80 ? line : `handlers: [\n    ${handlers.join(',\n    ')},\n  ]`)
}

/** Returns the names of the settings that a handler reads, as in `const { requiredLabel = '' } = settings`. */
const settingsReadBy = (module: string): string[] =>
  [...module.matchAll(/const \{ (\w+) = '' \} = settings$/gm)].map(([, name]) => name!)

/** Returns package.json with the versions or locations of its dependencies. */
export function withDependencies(manifest: string, { dependency }: Pick<NewExtension, 'dependency'>): string {
  const fields = JSON.parse(manifest) as { [field: string]: unknown }
  for (const field of ['dependencies', 'devDependencies', 'optionalDependencies']) {
    const entries = Object.entries(fields[field] as { [name: string]: string }).flatMap(([name, version]) => {
      const source = dependency(name, version)
      return source === undefined ? [] : [[name, source] as const]
    })
    if (entries.length === 0) delete fields[field]
    else fields[field] = Object.fromEntries(entries)
  }
  return `${JSON.stringify(fields, undefined, 2)}\n`
}
