import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { makeFolder } from '@capstan/kube/node'
import { Command, InvalidArgumentError, Option } from 'commander'
import { stringify } from 'yaml'
import { type Io, UsageError } from '../io.ts'
import {
  type CertificateSource,
  components,
  coreRoleForLocal,
  type Manifest,
  type ProviderToInstall,
  releaseMetadata,
} from '../manifests/components.ts'
import { providerNames } from '../manifests/names.ts'
import { shardCount } from '../manager/leader-election.ts'
import { versions } from '../versions.ts'

interface Options {
  readonly image: string
  readonly release: string
  readonly certificates: CertificateSource
  readonly replicas: number
  readonly shards?: number
  readonly outputDir?: string
}

/** `capstan manifests PROVIDER`: prints the manifests that run a provider in a management cluster, or writes a repository for clusterctl. */
export const manifestsCommand = (io: Io): Command =>
  new Command('manifests')
    .description('Print the manifests of a provider for kubectl apply, or write a repository for clusterctl')
    .addArgument(new Command().createArgument('<provider>', 'core or local').choices(['core', 'local']))
    .option('--image <image>', 'image of the manager', `capstan:v${versions.capstan}`)
    .addOption(
      new Option('--release <version>', 'version of the components').argParser(releaseVersion).default(`v${versions.capstan}`),
    )
    .addOption(
      new Option('--certificates <how>', 'source of the webhook certificate: the manager itself, or cert-manager')
        .choices(['self-managed', 'cert-manager'])
        .default('self-managed'),
    )
    .addOption(
      new Option('--replicas <n>', 'replicas of the Deployment; without --shards, one of them is the leader, and the others wait')
        .argParser(count)
        .default(1),
    )
    .addOption(
      new Option(
        '--shards <n>',
        'number of shards into which the namespaces are divided, each with its own Lease, so that several replicas work at the same time (core only); see --leader-elect-shards of capstan manager',
      ).argParser(shardCount),
    )
    .option('--output-dir <dir>', 'write a local repository of clusterctl to this folder (default: print the components)')
    .action(async (provider: ProviderToInstall, options: Options) => {
      const { image, release: version, certificates, replicas, shards, outputDir } = options
      if (shards !== undefined && provider !== 'core') throw new UsageError('--shards is an option of the core provider')
      if (outputDir !== undefined && !hasRegistry(image))
        throw new UsageError(
          `clusterctl accepts only images with a registry, not ${image}`,
          'Name one with --image, such as registry.example.com/capstan:v1.2.3.',
        )
      const objects: Manifest[] = components({
        provider,
        image,
        version,
        certificates,
        replicas,
        ...(shards === undefined ? {} : { shards }),
      })
      if (provider === 'local') objects.push(coreRoleForLocal())
      const text = yamlOf(objects)
      if (outputDir === undefined) return io.out(text.trimEnd())
      const { label, file } = providerNames[provider]
      const folder = join(resolve(outputDir), label, version)
      await makeFolder(folder)
      for (const [name, content] of [
        [file, text],
        ['metadata.yaml', yamlOf([releaseMetadata(version)])],
      ] as const) {
        await writeFile(join(folder, name), content)
        io.out(join(folder, name))
      }
    })

/** Whether the part before the first slash is a host. Upstream: github.com/distribution/reference. */
const hasRegistry = (image: string): boolean => /^(localhost|[^/]*[.:][^/]*)\/./.test(image)

const yamlOf = (objects: readonly Manifest[]): string =>
  objects.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n')

function releaseVersion(text: string): string {
  if (!/^v\d+\.\d+\.\d+(-[\w.]+)?$/.test(text)) throw new InvalidArgumentError('expected a version such as v1.2.3.')
  return text
}

function count(text: string): number {
  if (!/^[1-9]\d?$/.test(text)) throw new InvalidArgumentError('expected a number from 1 to 99.')
  return Number(text)
}
