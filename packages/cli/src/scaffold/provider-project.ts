/** Creates the files of a new provider project. Pure. The templates are a provider named `sample`, which is renamed. */
import { dnsLabelProblems, invalid, invalidObject } from '@capstan/kube'
import { type ProjectFile, withDependencies } from './extension-project.ts'
import { fillPlaceholders, type Templates } from './templates.ts'

/** Kinds that a new provider can have. The first two are required. */
export const providerKindNames = ['cluster', 'machine', 'machinepool', 'controlplane'] as const
export type ProviderKindName = (typeof providerKindNames)[number]

export interface NewProvider {
  readonly name: string
  readonly kinds: ReadonlySet<ProviderKindName>
  /** DNS suffix of the provider's API groups. */
  readonly domain: string
  /** Returns the version or location of a package for package.json; `undefined` removes the dependency. */
  dependency(name: string, version: string): string | undefined
  /** Version of Capstan. */
  readonly version: string
}

/** Returns the prefix of the names of kinds: `MyCloud` for `my-cloud`. */
export const kindPrefix = (name: string): string =>
  name
    .split('-')
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join('')

/** Validates the name of a provider, which becomes part of the names of objects and kinds. @throws StatusError Invalid with all problems */
export function checkProviderName(name: string): void {
  const object = { group: '', kind: 'Namespace' }
  const problems = dnsLabelProblems(`${name}-system`)
  // The name of a kind has at most 63 characters: the provider's name, and up to 24 further ones. The limit of 30 leaves a margin.
  if (!/^[a-z][a-z0-9-]*$/.test(name) || name.length > 30)
    problems.push('must begin with a letter and have at most 30 characters')
  const errors = problems.map((problem) => invalid('metadata.name', name, problem))
  if (errors.length > 0) throw invalidObject(object, name, errors)
}

/** Template files that belong to an optional kind. */
const kindOfFile: Readonly<Record<string, ProviderKindName>> = {
  'machine-pool.ts': 'machinepool',
  'control-plane.ts': 'controlplane',
}

export function providerProject(templates: Templates, provider: NewProvider): ProjectFile[] {
  const { name, version, kinds } = provider
  return [...templates]
    .filter(([path]) => kindOfFile[path] === undefined || kinds.has(kindOfFile[path]))
    .map(([path, text]) => {
      const renamed = rename(linesOf(path, text, kinds), provider)
      if (path === 'package.json') return { path, text: withDependencies(fillPlaceholders(renamed, { name, version }), provider) }
      if (path === 'README.md') return { path, text: fillPlaceholders(renamed, { name, version }) }
      return { path: path.replace(/^(git|docker)ignore$/, '.$1ignore'), text: renamed }
    })
}

/**
 * Removes the lines and YAML documents of kinds that the provider does not have. A template marks lines of an optional kind with
 * `// if --kinds includes KIND` at their end; these markers are removed, too.
 */
function linesOf(path: string, text: string, kinds: ReadonlySet<ProviderKindName>): string {
  if (path === 'examples.yaml' && !kinds.has('machinepool')) return `${text.split('\n---\n').slice(0, 2).join('\n---\n')}\n`
  return text.replace(
    /^(.*?) \/\/ if --kinds includes (machinepool|controlplane)\n/gm,
    (_, line: string, kind: ProviderKindName) => (kinds.has(kind) ? `${line}\n` : ''),
  )
}

function rename(text: string, { name, domain }: NewProvider): string {
  const prefix = kindPrefix(name)
  return text
    .replaceAll('sample.example.com', domain)
    .replaceAll('Sample', prefix)
    .replace(/sample(?=clusters?|machines?|controlplanes?)/g, prefix.toLowerCase())
    .replace(/\bsample\b/g, name)
}
