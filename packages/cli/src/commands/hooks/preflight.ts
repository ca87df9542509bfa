import { existsSync } from 'node:fs'
import type { ReleasedCatalog } from '@capstan/api'
import {
  ExtensionConfig,
  hookCatalog,
  preflight,
  publishedCatalog,
  registeredHandlers,
  releasedCatalog,
  upstreamCatalogs,
} from '@capstan/api'
import { isRecord } from '@capstan/kube'
import { Command, Option } from 'commander'
import type { Io } from '../../io.ts'
import { ExitCodes, UsageError } from '../../io.ts'
import { type ManagementOptions, withKubeconfig, withManagement } from '../../management.ts'
import { table } from '../../output/table.ts'
import { loadProviderHooks, type ProviderHooksOptions, withProviderHooks } from '../../provider-hooks.ts'
import { readYamlFile } from '../../read-files.ts'

interface Options extends ManagementOptions, ProviderHooksOptions {
  catalog: string
  output: 'text' | 'json'
}

type Target = Pick<ReleasedCatalog, 'release' | 'hooks'>

/** `capstan hooks preflight --catalog VERSION`: lists handlers whose hook version the release VERSION does not call, or has deprecated. */
export const preflightCommand = (io: Io, finish: (code: number) => void): Command =>
  withProviderHooks(withKubeconfig(new Command('preflight')))
    .description('List registered handlers whose hook version the release of --catalog does not call, or has deprecated')
    .option(
      '--catalog <version>',
      `release to check against: ${Object.keys(upstreamCatalogs).join(', ')} (upstream's), current (this release of Capstan), or a file with the OpenAPI document of a release (runtime-sdk-openapi.yaml) or the output of hooks catalog`,
      'current',
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (options: Options) => {
      const released = targetOf(options.catalog)
      const providerCatalog = releasedCatalog('', '', await loadProviderHooks(options))
      const target = { ...released, hooks: [...released.hooks, ...providerCatalog.hooks] }
      const { items } = await withManagement(io, options, (client) => client.list(ExtensionConfig, { signal: io.signal }))
      const handlers = items.flatMap(registeredHandlers)
      const findings = preflight(handlers, target)
      // An ExtensionConfig without handlers in its status may be undiscovered. Its handlers are then unknown and cannot be checked.
      const undiscovered = items.filter((config) => !config.status?.handlers).map(({ metadata }) => metadata.name)
      if (options.output === 'json')
        io.out(JSON.stringify({ release: target.release, handlers: handlers.length, findings, undiscovered }))
      else if (findings.length === 0) io.out(allCalledText(handlers.length, target.release))
      else
        for (const line of table(
          ['HANDLER', 'PROBLEM', 'WHY'],
          findings.map((finding) => [finding.handler, finding.kind, finding.message]),
        ))
          io.out(line)
      if (options.output === 'text')
        for (const name of undiscovered)
          io.err(
            `capstan: ExtensionConfig ${name} is not checked: its status has no handlers, because it was not discovered yet or has none`,
          )
      finish(findings.some(({ kind }) => kind === 'gone') ? ExitCodes.failed : ExitCodes.done)
    })

function targetOf(name: string): Target {
  if (name === 'current') return releasedCatalog('this release', '', hookCatalog)
  const upstreamCatalog = Object.hasOwn(upstreamCatalogs, name) ? upstreamCatalogs[name] : undefined
  if (upstreamCatalog) return upstreamCatalog
  if (!existsSync(name)) {
    throw new UsageError(
      `there is no catalog ${name}`,
      `Expected ${Object.keys(upstreamCatalogs).join(', ')}, current, or the path of a file.`,
    )
  }
  const value = readYamlFile(`--catalog ${name}`, name)
  const published = publishedCatalog(value)
  if (published) return published
  if (isRecord(value) && typeof value.release === 'string' && Array.isArray(value.hooks)) return value as unknown as Target
  throw new UsageError(
    `--catalog ${name}: the file names no hooks`,
    'Expected the OpenAPI document of a release, or the output of `capstan hooks catalog`.',
  )
}

const allCalledText = (handlers: number, release: string): string =>
  handlers === 1 ? `1 handler, which ${release} calls` : `${handlers} handlers, all of which ${release} calls`
