import { existsSync, readFileSync } from 'node:fs'
import type { ReleasedCatalog } from '@capstan/api'
import { ExtensionConfig, hookCatalog, preflight, registeredHandlers, releasedCatalog, upstreamCatalogs } from '@capstan/api'
import { isRecord } from '@capstan/kube'
import { Command, Option } from 'commander'
import type { Io } from '../../io.ts'
import { ExitCodes, UsageError } from '../../io.ts'
import { type ManagementOptions, withKubeconfig, withManagement } from '../../management.ts'
import { table } from '../../output/table.ts'
import { loadProviderHooks, type ProviderHooksOptions, withProviderHooks } from '../../provider-hooks.ts'

interface Options extends ManagementOptions, ProviderHooksOptions {
  catalog: string
  output: 'text' | 'json'
}

type Target = Pick<ReleasedCatalog, 'release' | 'hooks'>

/** `capstan hooks preflight --catalog VERSION`: which handlers would stop working under another release. */
export const preflightCommand = (io: Io, finish: (code: number) => void): Command =>
  withProviderHooks(withKubeconfig(new Command('preflight')))
    .description('Say which registered handlers would stop working under another release')
    .option(
      '--catalog <version>',
      `the release: ${Object.keys(upstreamCatalogs).join(', ')} of upstream, current, or a file with its catalog as JSON`,
      'current',
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (options: Options) => {
      const released = targetOf(options.catalog)
      const ofProviders = releasedCatalog('', '', await loadProviderHooks(options))
      const target = { ...released, hooks: [...released.hooks, ...ofProviders.hooks] }
      const { items } = await withManagement(io, options, (client) => client.list(ExtensionConfig, { signal: io.signal }))
      const handlers = items.flatMap(registeredHandlers)
      const findings = preflight(handlers, target)
      if (options.output === 'json') io.out(JSON.stringify({ release: target.release, handlers: handlers.length, findings }))
      else if (findings.length === 0) io.out(`${handlers.length} handlers, all of which ${target.release} calls`)
      else
        for (const line of table(
          ['HANDLER', 'PROBLEM', 'WHY'],
          findings.map((one) => [one.handler, one.kind, one.message]),
        ))
          io.out(line)
      finish(findings.some(({ kind }) => kind === 'gone') ? ExitCodes.failed : ExitCodes.done)
    })

function targetOf(name: string): Target {
  if (name === 'current') return releasedCatalog('this release', '', hookCatalog)
  const known = Object.hasOwn(upstreamCatalogs, name) ? upstreamCatalogs[name] : undefined
  if (known) return known
  if (!existsSync(name)) {
    throw new UsageError(
      `there is no catalog ${name}`,
      `There are ${Object.keys(upstreamCatalogs).join(', ')}, current, and files.`,
    )
  }
  const value: unknown = JSON.parse(readFileSync(name, 'utf8'))
  if (isRecord(value) && typeof value.release === 'string' && Array.isArray(value.hooks)) return value as unknown as Target
  throw new UsageError(`${name} is no catalog: expected an object with release and hooks`)
}
