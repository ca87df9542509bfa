/** The files of a new provider. Pure. The templates are a provider called `sample`, which is renamed. */
import { dnsLabelProblems, invalid, invalidObject } from '@capstan/kube'
import { type ProjectFile, withDependencies } from './extension-project.ts'
import { fillPlaceholders, type Templates } from './templates.ts'

/** Kinds that a new provider can have. A provider of infrastructure has the first two in any case. */
export const providerKindNames = ['cluster', 'machine', 'machinepool', 'controlplane'] as const
export type ProviderKindName = (typeof providerKindNames)[number]

export interface NewProvider {
  readonly name: string
  readonly kinds: ReadonlySet<ProviderKindName>
  /** DNS suffix of its API groups. */
  readonly domain: string
  dependency(name: string, version: string): string | undefined
  /** Version of this tool. */
  readonly version: string
}

/** Returns the prefix of the names of kinds: `MyCloud` for `my-cloud`. */
export const kindPrefix = (name: string): string =>
  name
    .split('-')
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join('')

/** @throws StatusError Invalid when objects or kinds cannot have the name */
export function checkProviderName(name: string): void {
  const object = { group: '', kind: 'Namespace' }
  const problems = dnsLabelProblems(`${name}-system`)
  // The name of a kind begins with a letter, and adds up to 25 characters to this name.
  if (!/^[a-z][a-z0-9-]*$/.test(name) || name.length > 30)
    problems.push('must begin with a letter and have at most 30 characters')
  const errors = problems.map((problem) => invalid('metadata.name', name, problem))
  if (errors.length > 0) throw invalidObject(object, name, errors)
}

/** Files of a single kind. */
const ofKind: Readonly<Record<string, ProviderKindName>> = {
  'machine-pool.ts': 'machinepool',
  'control-plane.ts': 'controlplane',
}

export function providerProject(templates: Templates, provider: NewProvider): ProjectFile[] {
  const { name, version, kinds } = provider
  return [...templates]
    .filter(([path]) => ofKind[path] === undefined || kinds.has(ofKind[path]))
    .map(([path, text]) => {
      const renamed = rename(linesOf(path, text, kinds), provider)
      if (path === 'package.json') return { path, text: withDependencies(fillPlaceholders(renamed, { name, version }), provider) }
      if (path === 'README.md') return { path, text: fillPlaceholders(renamed, { name, version }) }
      return { path: path.replace(/^(git|docker)ignore$/, '.$1ignore'), text: renamed }
    })
}

/** Removes the lines and documents of kinds that the provider does not have. */
function linesOf(path: string, text: string, kinds: ReadonlySet<ProviderKindName>): string {
  if (path === 'examples.yaml' && !kinds.has('machinepool')) return `${text.split('\n---\n').slice(0, 2).join('\n---\n')}\n`
  return text.replace(/^(.*?) \/\/ (machinepool|controlplane)\n/gm, (_, line: string, kind: ProviderKindName) =>
    kinds.has(kind) ? `${line}\n` : '',
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
