import { type Backup, backUp, checkBackup, DefaultBump, restoreBackup } from '@capstan/apiserver'
import { messageOf, systemClock, timestamp } from '@capstan/kube'
import { Command, InvalidArgumentError, Option } from 'commander'
import { resolve } from 'node:path'
import { dataFolder } from '../data-folder.ts'
import type { Io } from '../io.ts'
import { dataOption } from '../data-option.ts'

const dataFlag = dataOption('the folder that `capstan apiserver` or `capstan up` was given (default: .capstan)')

/** `capstan backup FILE`: the state of a data folder in one file; a server may be running on it. */
export const backupCommand = (io: Io): Command =>
  new Command('backup')
    .description('Write the state of a data folder into one file; the server may go on running')
    .argument('<file>', 'where to write the backup: it holds Secrets, and only its owner can read it')
    .addOption(dataFlag)
    .option('--salvage', 'of a folder that is damaged, take what can be read')
    .action(async (path: string, { data, salvage = false }: { data?: string; salvage?: boolean }) => {
      const folder = dataFolder(io, data).database
      const file = resolve(path)
      const made = await backUp({ folder, file, clock: systemClock, salvage }).catch(failed(`Cannot back up ${folder}`))
      for (const damage of made.damage ?? []) io.err(`capstan: warning: ${damage}: what was acknowledged behind that is lost`)
      io.out(`Backed up to ${file}: ${summary(made)}`)
    })
    .addCommand(
      new Command('check')
        .description('Read a backup from beginning to end, and say what it holds')
        .argument('<file>', 'the backup')
        .action(async (path: string) => {
          const file = resolve(path)
          const found = await checkBackup(file).catch(failed(`Cannot use backup ${file}`))
          io.out(`${file} is whole: ${summary(found)}`)
          for (const { name, revision, objects } of found.stores)
            io.out(`  store ${name}: ${objects} objects, revision ${revision}`)
        }),
    )

/** `capstan restore FILE`: a data folder as a backup says. */
export const restoreCommand = (io: Io): Command =>
  new Command('restore')
    .description('Make a data folder what a backup says; the server must not be running')
    .argument('<file>', 'the backup')
    .addOption(dataFlag)
    .option('--force', 'replace the state that is there')
    .addOption(
      new Option('--bump-revision <n>', 'how far revisions go on above those of the backup: more than were given out since')
        .argParser(revisions)
        .default(DefaultBump),
    )
    .action(async (path: string, options: { data?: string; force?: boolean; bumpRevision: number }) => {
      const folder = dataFolder(io, options.data).database
      const { force = false, bumpRevision } = options
      const restored = await restoreBackup({ folder, file: resolve(path), clock: systemClock, force, bumpRevision }).catch(
        failed(`Cannot restore ${folder}`),
      )
      io.out(`Restored ${folder}: ${summary(restored)}; revisions go on ${bumpRevision} above those`)
    })

const failed = (what: string) => (err: unknown) => {
  throw new Error(`${what}: ${messageOf(err)}`, { cause: err })
}

const summary = ({ time, objects, stores, format, size }: Backup): string =>
  `${objects} objects of ${stores.length} ${stores.length === 1 ? 'store' : 'stores'} as of ${timestamp(time)}, ${size} bytes, format ${format}`

function revisions(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('expected a whole number, not below 0.')
}
