import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Hook } from '@capstan/api'
import { subdomainProblems, isReason, systemClock } from '@capstan/kube'
import { Command, InvalidArgumentError, Option } from 'commander'
import { displayPath } from '../dev/lines.ts'
import type { Io } from '../io.ts'
import { UsageError } from '../io.ts'
import { readYamlFile } from '../read-files.ts'
import { authorityIn, makeServiceCertificate } from '../scaffold/certificate.ts'
import { checkName, extensionProject, hooksToHandle, namespaceOf, type ProjectFile } from '../scaffold/extension-project.ts'
import { checkout, dependencyFrom } from '../scaffold/origin.ts'
import { checkProviderName, type ProviderKindName, providerKindNames, providerProject } from '../scaffold/provider-project.ts'
import { extensionTemplates, fillPlaceholders, providerTemplates } from '../scaffold/templates.ts'
import { writeProject } from '../scaffold/write-project.ts'
import { versions } from '../versions.ts'

interface Options {
  dir?: string
  hook: readonly Hook[]
  certificates: 'cert-manager' | 'self-made'
  output: 'text' | 'json'
  link?: true
}

/** `capstan new …`: creates projects and certificates. */
export const newCommand = (io: Io): Command => {
  const command = new Command('new').description('Create a project for an extension or a provider, or a certificate')
  command
    .command('extension')
    .description('Create a runtime extension: handlers, tests, image and manifests')
    .argument('<name>', 'name of the extension, of its ExtensionConfig and of its Service')
    .option('--dir <dir>', 'folder to write to (default: the name)')
    .addOption(
      new Option('--hook <hooks>', 'hooks to handle, separated by commas')
        .argParser(hooksNamed)
        .default([hooksToHandle[0]!], hooksToHandle[0]!.name),
    )
    .addOption(
      new Option('--certificates <how>', 'source of the certificate: cert-manager in the cluster, or this command')
        .choices(['cert-manager', 'self-made'])
        .default('cert-manager'),
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .option('--link', 'depend on the folders of this checkout of Capstan instead of on published packages')
    .action((name: string, options: Options) => newExtension(name, options, io))
  command
    .command('provider')
    .description('Create a provider: kinds with controllers, tests against the contracts, image and manifests')
    .argument('<name>', 'name of the provider; the names of its kinds begin with it')
    .option('--dir <dir>', 'folder to write to (default: the name)')
    .addOption(
      new Option('--kinds <kinds>', `kinds to begin with, separated by commas: ${providerKindNames.join(', ')}`)
        .argParser(kindsNamed)
        .default(new Set(['cluster', 'machine']), 'cluster,machine'),
    )
    .option('--domain <domain>', 'DNS suffix of its API groups (default: NAME.example.com)')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .option('--link', 'depend on the folders of this checkout of Capstan instead of on published packages')
    .action((name: string, options: ProviderOptions) => newProvider(name, options, io))
  command
    .command('certificate')
    .description('Create a Secret with a certificate for an extension, valid for a year, and print it')
    .argument('<name>', 'name of the extension')
    .option(
      '--renew <file>',
      'file with an earlier Secret: overwrite it instead of printing; its certificate authority stays trusted until the next renewal',
    )
    .action(async (name: string, { renew }: { renew?: string }) => {
      checkNameArgument(name)
      const template = extensionTemplates().get('manifests/30-certificate.self-made.yaml')!
      const namespace = namespaceOf(name)
      const previousAuthority = renew === undefined ? '' : authorityOf(name, renew)
      const certificates = await makeServiceCertificate(name, namespace, systemClock, previousAuthority)
      const manifest = fillPlaceholders(template, { name, namespace, ...certificates })
      if (renew === undefined) return io.out(manifest.trimEnd())
      await writeFile(renew, manifest)
      io.out(`${renew}: a new certificate, valid until ${certificates.until}`)
    })
  return command
}

async function newExtension(name: string, options: Options, io: Io): Promise<void> {
  checkNameArgument(name)
  const folder = resolve(options.dir ?? name)
  const files = extensionProject(extensionTemplates(), {
    name,
    hooks: options.hook,
    certificates:
      options.certificates === 'self-made' ? await makeServiceCertificate(name, namespaceOf(name), systemClock) : 'cert-manager',
    dependency: dependencyFrom(options.link ? linkedCheckout() : undefined),
    version: versions.capstan,
  })
  await writeAndReport(name, folder, files, ['npm run dev'], options, io)
}

interface ProviderOptions {
  dir?: string
  kinds: ReadonlySet<ProviderKindName>
  domain?: string
  output: 'text' | 'json'
  link?: true
}

async function newProvider(name: string, options: ProviderOptions, io: Io): Promise<void> {
  withUsageError(() => checkProviderName(name))
  const { domain = `${name}.example.com` } = options
  if (subdomainProblems(`infrastructure.${domain}`).length > 0) throw new UsageError(`--domain ${domain}: expected a DNS name`)
  const files = providerProject(providerTemplates(), {
    name,
    kinds: options.kinds,
    domain,
    dependency: dependencyFrom(options.link ? linkedCheckout() : undefined),
    version: versions.capstan,
  })
  await writeAndReport(name, resolve(options.dir ?? name), files, ['npm start -- --kubeconfig FILE'], options, io)
}

/** Writes the files, and prints their paths and the next steps. */
async function writeAndReport(
  name: string,
  folder: string,
  files: readonly ProjectFile[],
  commands: readonly string[],
  options: Pick<Options, 'output'>,
  io: Io,
): Promise<void> {
  await writeProject(folder, files)

  const paths = files.map(({ path }) => path)
  const next = [`cd ${displayPath(folder)}`, 'npm install', 'npm test', ...commands]
  if (options.output === 'json') {
    io.out(JSON.stringify({ name, folder, files: paths, next }))
    return
  }
  for (const path of paths) io.out(join(displayPath(folder), path))
  io.out('\nNext:\n')
  for (const command of next) io.out(`  ${command}`)
}

function linkedCheckout(): string {
  const root = checkout()
  if (root === undefined) throw new UsageError('--link needs a checkout of Capstan: this command was installed from npm')
  return root
}

function authorityOf(name: string, file: string): string {
  try {
    return authorityIn(readYamlFile(`--renew ${file}`, file), `${name}-certificate`)
  } catch (err) {
    throw err instanceof TypeError ? new UsageError(`--renew ${file}: ${err.message}`) : err
  }
}

const checkNameArgument = (name: string): void => withUsageError(() => checkName(name))

function withUsageError(check: () => void): void {
  try {
    check()
  } catch (err) {
    if (isReason(err, 'Invalid')) throw new UsageError(err.message, undefined, { cause: err })
    throw err
  }
}

function hooksNamed(text: string): Hook[] {
  const names = new Set(text.split(',').map((name) => name.trim().toLowerCase()))
  const unknown = [...names].filter((name) => !hooksToHandle.some((hook) => hook.name.toLowerCase() === name))
  if (unknown.length > 0) {
    const hookNames = hooksToHandle.map((hook) => hook.name).join(', ')
    throw new InvalidArgumentError(`there is no hook ${unknown.join(', ')}: expected ${hookNames}.`)
  }
  const hooks = hooksToHandle.filter((hook) => names.has(hook.name.toLowerCase()))
  const patchHooks = hooks.filter(({ name }) => name === 'ValidateTopology' || name === 'DiscoverVariables')
  if (patchHooks.length > 0 && !hooks.some(({ name }) => name === 'GeneratePatches'))
    throw new InvalidArgumentError(
      `${patchHooks[0]!.name} belongs to a patch, and core rejects a patch without a handler of GeneratePatches: add GeneratePatches.`,
    )
  return hooks
}

function kindsNamed(text: string): Set<ProviderKindName> {
  const names = new Set(text.split(',').map((name) => name.trim().toLowerCase()))
  const unknown = [...names].filter((name) => !(providerKindNames as readonly string[]).includes(name))
  if (unknown.length > 0) {
    throw new InvalidArgumentError(`there is no kind ${unknown.join(', ')}: expected ${providerKindNames.join(', ')}.`)
  }
  for (const name of ['cluster', 'machine']) {
    if (!names.has(name)) throw new InvalidArgumentError(`an infrastructure provider needs the kind ${name}: add it.`)
  }
  return names as Set<ProviderKindName>
}
