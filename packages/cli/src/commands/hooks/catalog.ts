import { catalogProblems, createCatalog, hookCatalog, type ReleasedCatalog, releasedCatalog } from '@capstan/api'
import { isRecord, systemClock, timestamp } from '@capstan/kube'
import { Command } from 'commander'
import type { Io } from '../../io.ts'
import { ExitCodes, UsageError } from '../../io.ts'
import { loadProviderHooks, type ProviderHooksOptions, withProviderHooks } from '../../provider-hooks.ts'
import { readYamlFile } from '../../read-files.ts'
import { versions } from '../../versions.ts'

interface Options extends ProviderHooksOptions {
  release?: string
  date?: string
  since?: readonly string[]
}

/** `capstan hooks catalog`: prints the hook catalog of this release, or checks it against the catalogs of earlier releases. */
export const catalogCommand = (io: Io, finish: (code: number) => void): Command =>
  withProviderHooks(new Command('catalog'))
    .description('Print the hooks of this release with their schemas, or compare them with those of earlier releases')
    .option(
      '--release <version>',
      'name of the release (default: the Cluster API release that core implements, or "this release" with --provider-hooks)',
    )
    .option('--date <day>', 'day of the release, such as 2026-08-11 (default: today)', day)
    .option(
      '--since <catalog>',
      'file with the catalog of an earlier release, as this command prints it, to check compatibility with; may be repeated, oldest first',
      (file, before: readonly string[] | undefined) => [...(before ?? []), file],
    )
    .action(async ({ date = today(), since = [], ...options }: Options) => {
      const providerHooks = await loadProviderHooks(options)
      // With --provider-hooks, the catalog has only the hooks of the given modules.
      const hooks = providerHooks.length > 0 ? providerHooks : hookCatalog
      const release = options.release ?? (providerHooks.length > 0 ? 'this release' : `${versions.clusterAPI}.0`)
      const current = releasedCatalog(release, date, hooks)
      if (since.length === 0) return io.out(catalogText(current))
      const before = since.map(catalogIn)
      const problems = catalogProblems(createCatalog(hooks), current, before)
      for (const problem of problems) io.out(problem)
      if (problems.length === 0) io.out(`${release} is compatible with ${before.map((catalog) => catalog.release).join(', ')}`)
      finish(problems.length === 0 ? ExitCodes.done : ExitCodes.failed)
    })

/** Formats a catalog with one hook per line, so that a diff shows the changed hooks. */
const catalogText = ({ release, date, hooks }: ReleasedCatalog): string =>
  [
    `{"release":${JSON.stringify(release)},"date":${JSON.stringify(date)},"hooks":[`,
    hooks.map((hook) => JSON.stringify(hook)).join(',\n'),
    ']}',
  ].join('\n')

function catalogIn(file: string): ReleasedCatalog {
  const value = readYamlFile(`--since ${file}`, file)
  const isCatalog =
    isRecord(value) &&
    typeof value.release === 'string' &&
    typeof value.date === 'string' &&
    Array.isArray(value.hooks) &&
    value.hooks.every((hook) => isRecord(hook) && isRecord(hook.request) && isRecord(hook.response))
  if (isCatalog) return value as unknown as ReleasedCatalog
  throw new UsageError(`--since ${file}: it is not a catalog`, '`capstan hooks catalog` prints one.')
}

const today = (): string => timestamp(systemClock.now()).slice(0, 10)

function day(text: string): string {
  if (/^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))) return text
  throw new UsageError(`--date ${text}: expected a day such as 2026-08-11`)
}
