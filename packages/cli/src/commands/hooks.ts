import { Command } from 'commander'
import { type Io, UsageError } from '../io.ts'
import { callCommand } from './hooks/call.ts'
import { catalogCommand } from './hooks/catalog.ts'
import { checkCommand } from './hooks/check.ts'
import { openapiCommand } from './hooks/openapi.ts'
import { preflightCommand } from './hooks/preflight.ts'
import { replayCommand } from './hooks/replay.ts'
import { retryCommand } from './hooks/retry.ts'
import { waitingCommand } from './hooks/waiting.ts'

/** `capstan hooks …`: commands for authors and operators of extensions, and for users whose Clusters wait for hooks. */
export const hooksCommand = (io: Io, finish: (code: number) => void): Command => {
  const hooks = new Command('hooks').description(
    'Call hooks, replay recorded calls, list objects that wait for hooks, check releases',
  )
  const subcommands = [waitingCommand, retryCommand, callCommand, checkCommand, replayCommand, openapiCommand, preflightCommand]
  for (const make of [...subcommands, catalogCommand]) hooks.addCommand(make(io, finish))
  hooks.addCommand(recordCommand(), { hidden: true })
  hooks.addHelpText('after', `\n${howToRecord}`)
  return hooks
}

/** Help for users who look for a command of `hooks` that records calls: there is none. */
const howToRecord = 'Calls are recorded where they are made: capstan up, dev or manager with --record-hooks FILE.'

/** Hidden command that fails with an explanation of how to record calls. */
const recordCommand = (): Command =>
  new Command('record')
    .argument('[args...]')
    .allowUnknownOption()
    .action(() => {
      throw new UsageError('hooks record does not exist', howToRecord)
    })
