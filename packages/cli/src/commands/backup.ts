import { type Backup, backUp, checkBackup, DefaultBump, restoreBackup } from '@capstan/apiserver'
import { messageOf, systemClock, timestamp } from '@capstan/kube'
import { Command, InvalidArgumentError, Option } from 'commander'
import { resolve } from 'node:path'
import { dataFolder } from '../data-folder.ts'
import type { Io } from '../io.ts'
import { dataOption } from '../data-option.ts'

const dataFlag = dataOption('data folder of `capstan apiserver` or `capstan up` (default: .capstan)')

/** `capstan backup FILE`: writes the state of a data folder to one file. A server may be using the folder. */
export const backupCommand = (io: Io): Command =>
  new Command('backup')
    .description('Back up the state of a data folder to a file; the server can keep running')
    .argument('<file>', 'file to write the backup to; it contains Secrets, and only its owner can read it')
    .addOption(dataFlag)
    .option('--salvage', 'back up the readable part of a damaged folder')
    .action(async (path: string, { data, salvage = false }: { data?: string; salvage?: boolean }) => {
      const folder = dataFolder(io, data).database
      const file = resolve(path)
      const backup = await backUp({ folder, file, clock: systemClock, salvage }).catch(failed(`Cannot back up ${folder}`))
      for (const damage of backup.damage ?? [])
        io.err(`capstan: warning: ${damage}: acknowledged writes may be missing from the backup`)
      io.out(`Backed up to ${file}: ${summary(backup)}`)
    })
    .addCommand(
      new Command('check')
        .description('Verify a backup and print a summary of its content')
        .argument('<file>', 'the backup')
        .action(async (path: string) => {
          const file = resolve(path)
          const backup = await checkBackup(file).catch(failed(`Cannot use backup ${file}`))
          io.out(`${file} is intact: ${summary(backup)}`)
          for (const { name, revision, objects } of backup.stores)
            io.out(`  store ${name}: ${objects} objects, revision ${revision}`)
        }),
    )

/** `capstan restore FILE`: creates a data folder from a backup. */
export const restoreCommand = (io: Io): Command =>
  new Command('restore')
    .description('Restore a data folder from a backup; the server must not be running')
    .argument('<file>', 'the backup')
    .addOption(dataFlag)
    .option('--force', 'replace existing state')
    .addOption(
      new Option(
        '--bump-revision <n>',
        'number added to the revision of the backup; must be at least the number of writes since the backup, if clients saw these writes',
      )
        .argParser(revisions)
        .default(DefaultBump),
    )
    .action(async (path: string, options: { data?: string; force?: boolean; bumpRevision: number }) => {
      const folder = dataFolder(io, options.data).database
      const { force = false, bumpRevision } = options
      const restored = await restoreBackup({ folder, file: resolve(path), clock: systemClock, force, bumpRevision }).catch(
        failed(`Cannot restore ${folder}`),
      )
      io.out(`Restored ${folder}: ${summary(restored)}; revisions continue ${bumpRevision} higher`)
    })

const failed = (action: string) => (err: unknown) => {
  throw new Error(`${action}: ${messageOf(err)}`, { cause: err })
}

const summary = ({ time, objects, stores, format, size }: Backup): string =>
  `${objects} objects of ${stores.length} ${stores.length === 1 ? 'store' : 'stores'} as of ${timestamp(time)}, ${size} bytes, format ${format}`

function revisions(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('expected a whole number, not below 0.')
}
