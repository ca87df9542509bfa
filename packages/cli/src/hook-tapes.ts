/** Records hook calls to files (tapes), and replays tapes instead of calling extensions. */
import { ExtensionConfig } from '@capstan/api'
import type { CallObserver, HookTransport, Tape, TapedConfig } from '@capstan/extension'
import { createRecorder, openTape, parseTape, TapeError, tapedConfigs, tapeTransport } from '@capstan/extension'
import type { Client, Clock } from '@capstan/kube'
import { messageOf, orAbsent } from '@capstan/kube'
import { type Command, Option } from 'commander'
import { UsageError } from './io.ts'
import { readTextFile } from './read-files.ts'

export interface RecordOptions {
  recordHooks?: string
}

/** Adds the flag --record-hooks. */
export const withRecordHooks = (command: Command): Command =>
  command.addOption(
    new Option('--record-hooks <file>', 'record calls of runtime hooks to this file (a tape); detected secrets are redacted'),
  )

export interface Recording {
  /** Observer that records calls; absent without --record-hooks. */
  readonly onCall?: CallObserver
  close(): Promise<void>
}

/**
 * Opens the tape of --record-hooks, if given. Calls `report` if the recording ends early, and for the first call that cannot be recorded;
 * the command continues.
 *
 * @throws UsageError when the tape cannot be opened
 */
export async function recordHooks(
  { recordHooks }: RecordOptions,
  clock: Clock,
  report: (problem: string) => void,
): Promise<Recording> {
  if (recordHooks === undefined) return { close: () => Promise.resolve() }
  const file = await openTape(recordHooks).catch((err: unknown) => {
    throw new UsageError(`--record-hooks: ${messageOf(err)}`)
  })
  const recorder = createRecorder(file, { clock, report })
  return { onCall: recorder.observe, close: () => recorder.close() }
}

/** Reads a tape. @throws UsageError that names the tape when it cannot be read or is invalid */
export function readTapeFile(path: string): Tape {
  try {
    return parseTape(readTextFile(`tape ${path}`, path))
  } catch (err) {
    throw err instanceof TapeError ? new UsageError(`tape ${path}: ${err.message}`) : err
  }
}

export interface TapePlayback {
  readonly hookTransport: HookTransport
  /** Creates the missing ExtensionConfigs of the tape. Returns the names of all ExtensionConfigs of the tape. */
  register(client: Client): Promise<readonly string[]>
}

/**
 * Reads a tape. Returns a transport that answers hook calls with the recorded responses instead of calling extensions.
 *
 * @throws UsageError when the tape cannot be read or is invalid
 */
export function playHooks(file: string): TapePlayback {
  const tape = readTapeFile(file)
  const configs = tapedConfigs(tape)
  return {
    hookTransport: tapeTransport(tape),
    async register(client) {
      for (const config of configs) await createMissing(client, config)
      return configs.map(({ name }) => name)
    },
  }
}

async function createMissing(client: Client, { name, url, settings }: TapedConfig): Promise<void> {
  if (await orAbsent(client.get(ExtensionConfig, { name }))) return
  await client.create(ExtensionConfig, { metadata: { name }, spec: { clientConfig: { url }, settings } })
}
