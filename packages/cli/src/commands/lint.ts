import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Finding,
  Levels,
  type Level,
  lint,
  type LintReport,
  linkOf,
  MalformedManifest,
  type Manifest,
  metadataOf,
  type ProviderManifests,
  providerManifests,
  rules,
  sarif,
} from '@capstan/conformance'
import {
  apiVersionOf,
  ClusterRole,
  CustomResourceDefinition,
  createClient,
  type Kind,
  type KubeObject,
  systemClock,
  systemRandom,
} from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { Command, Option } from 'commander'
import { ExitCodes, type Io, UsageError } from '../io.ts'
import { fetchManifests, isUrl, releaseOf } from '../lint/fetch-manifests.ts'
import { readDocumentation, readManifests } from '../lint/read-manifests.ts'
import { table } from '../output/table.ts'
import { versions } from '../versions.ts'

interface Options {
  readonly output: 'table' | 'json' | 'sarif'
  readonly level: Level
  readonly why?: true
  readonly release?: string
}

/** `capstan lint PATH`: static checks of a provider against the contracts. */
export const lintCommand = (io: Io, finish: (code: number) => void): Command =>
  new Command('lint')
    .description("Check a provider's CustomResourceDefinitions and manifests against the provider contracts, without running it")
    .argument(
      '<path>',
      'folder of manifests, components file, URL of either a file or a release, or kubeconfig of a cluster with the provider',
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(['table', 'json', 'sarif']).default('table'))
    .addOption(new Option('--level <level>', 'least important level to report').choices([...Levels]).default('SHOULD'))
    .option('--why', 'print the effect of each violation in core or clusterctl')
    .option('--release <version>', 'version of the release, which the metadata file must cover')
    .addHelpText('after', '\nExit code 1 when a rule of level MUST is violated, 2 on wrong usage.')
    .action(async (path: string, options: Options) => {
      if (options.release !== undefined && !/^v?\d+\.\d+/.test(options.release)) {
        throw new UsageError(`--release ${options.release}: expected a version such as v1.2.3`)
      }
      const provider = await providerAt(path, options, io)
      const fullReport = lint(provider, rules)
      const levels = Levels.slice(0, Levels.indexOf(options.level) + 1)
      const report = { ...fullReport, findings: fullReport.findings.filter(({ rule }) => levels.includes(rule.level)) }
      for (const line of print(report, provider, options)) io.out(line)
      finish(fullReport.findings.some(({ rule }) => rule.level === 'MUST') ? ExitCodes.failed : ExitCodes.done)
    })

/**
 * Reads the provider's manifests.
 *
 * @throws UsageError when a file, folder or URL cannot be read, a CustomResourceDefinition is malformed, or none belongs to a provider
 * contract; another Error when the cluster of a kubeconfig cannot be read
 */
async function providerAt(path: string, { release = releaseOf(path) }: Options, io: Io): Promise<ProviderManifests> {
  const documentation = isFolder(path) ? readDocumentation(path) : undefined
  const options = { ...(release === undefined ? {} : { release }), ...(documentation === undefined ? {} : { documentation }) }
  const manifests = await manifestsAt(path, io)
  // A file with a Deployment is a complete components file; a folder has sources for kustomize.
  const isRendered = manifests.some(({ object }) => object.kind === 'Deployment') && !isFolder(path)
  let provider: ProviderManifests
  try {
    provider = providerManifests(manifests, { isRendered, ...options })
  } catch (err) {
    if (err instanceof MalformedManifest) throw new UsageError(err.message)
    throw err
  }
  if (provider.kinds.length === 0) {
    throw new UsageError(
      `${path}: no CustomResourceDefinition of a provider`,
      crdsHint(path) ??
        'A kind is recognized by its group (infrastructure.…, bootstrap.…, controlplane.…) or a label cluster.x-k8s.io/v1beta…, and by the suffix of its name.',
    )
  }
  return provider
}

async function manifestsAt(path: string, io: Io): Promise<readonly Manifest[]> {
  if (isUrl(path)) return fetchManifests(path)
  return isKubeconfig(path) ? manifestsOfCluster(path) : manifestsOfFiles(path, io)
}

/**
 * Returns a hint with the command that prints the CRDs, if `path` is a provider project in TypeScript, such as `capstan new provider`
 * creates; otherwise undefined.
 */
function crdsHint(path: string): string | undefined {
  const file = join(path, 'package.json')
  if (!isFolder(path) || !statSync(file, { throwIfNoEntry: false })?.isFile()) return undefined
  const { scripts } = JSON.parse(readFileSync(file, 'utf8')) as { scripts?: { crds?: unknown } }
  if (typeof scripts?.crds !== 'string') return undefined
  return `The program of this provider prints its CustomResourceDefinitions: in ${path}, run npm run --silent crds > crds.json, and then capstan lint crds.json.`
}

function manifestsOfFiles(path: string, io: Io): readonly Manifest[] {
  const { manifests, unread } = readManifests(path)
  if (unread.length > 0) io.err(`capstan: skipped files that are not YAML: ${unread.length}; the first is ${unread[0]}`)
  return manifests
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

function isKubeconfig(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false
  const text = readFileSync(path, 'utf8')
  return /^["']?kind["']?:\s*["']?Config\b/m.test(text) && /^clusters:/m.test(text)
}

async function manifestsOfCluster(path: string): Promise<Manifest[]> {
  const transport = httpsTransport(await loadKubeconfig(path), { clock: systemClock, random: systemRandom, userAgent: 'capstan' })
  try {
    const client = createClient(transport)
    const manifestsOf = async <T extends KubeObject>(kind: Kind<T>): Promise<Manifest[]> => {
      const { items } = await client.list(kind)
      return items.map((item) => ({
        object: { ...(item as object), apiVersion: apiVersionOf(kind), kind: kind.kind },
        file: path,
        line: 1,
      }))
    }
    return [...(await manifestsOf(CustomResourceDefinition)), ...(await manifestsOf(ClusterRole))]
  } finally {
    transport.close()
  }
}

function print(report: LintReport, provider: ProviderManifests, { output, why }: Options): string[] {
  if (output === 'sarif') return [JSON.stringify(sarif(report, versions.capstan), undefined, 2)]
  if (output === 'json') return [JSON.stringify(asJson(report), undefined, 2)]
  const { findings, checked, notApplicable } = report
  const counts = Levels.map((level) => `${findings.filter(({ rule }) => rule.level === level).length} ${level}`).join(', ')
  const scope = `${provider.kinds.length} kinds, ${checked.length} rules checked, ${notApplicable.length} not applicable`
  if (findings.length === 0) return [`No findings: ${scope}.`]
  const rows = findings.map((finding) => [finding.rule.level, finding.rule.id, metadataOf(finding.manifest).name, finding.path])
  return [
    ...table(['LEVEL', 'RULE', 'OBJECT', 'FIELD'], rows),
    '',
    ...findings.flatMap((finding) => [...details(finding, why ?? false), '']),
    `${counts}: ${scope}.`,
  ]
}

function details({ rule, manifest, path, message, edit }: Finding, why: boolean): string[] {
  return [
    `${rule.level} ${rule.id}: ${message}`,
    `  at    ${manifest.file}:${manifest.line} ${path}`,
    `  rule  ${rule.sentence} ${linkOf(rule)}`,
    ...(why ? [`  why   ${rule.why}${rule.cases ? ` (${rule.cases.join(', ')})` : ''}`] : []),
    `  edit  ${edit}`,
  ]
}

const asJson = ({ findings, checked, notApplicable }: LintReport): object => ({
  findings: findings.map(({ rule, manifest, path, message, edit }) => ({
    rule: rule.id,
    level: rule.level,
    object: metadataOf(manifest).name,
    file: manifest.file,
    line: manifest.line,
    path,
    message,
    sentence: rule.sentence,
    link: linkOf(rule),
    why: rule.why,
    edit,
  })),
  checked: checked.map(({ id }) => id),
  notApplicable: notApplicable.map(({ id }) => id),
})
