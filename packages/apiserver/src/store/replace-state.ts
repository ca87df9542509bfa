/**
 * Replaces the whole state of a data folder atomically: after an interruption at any time, `finishReplacement` leaves either the old or the
 * new state in the folder.
 *
 *   state.new       the new state while it is written
 *   state.restored  the complete new state, which replaces `state` once the old state has been moved away
 *   state.replaced  the old state
 */
import type { Files } from './files.ts'

export const StateName = 'state'
const TemporaryName = 'state.new'
const RestoredName = 'state.restored'
const ReplacedName = 'state.replaced'

/** Replaces the state. `writeState` writes the new state into the given folder, and resolves once it is durable. */
export async function replaceState(files: Files, folder: string, writeState: (folder: string) => Promise<void>): Promise<void> {
  await finishReplacement(files, folder)
  await writeState(`${folder}/${TemporaryName}`)
  await files.rename(`${folder}/${TemporaryName}`, `${folder}/${RestoredName}`)
  await files.syncFolder(folder)
  if ((await files.list(folder)).includes(StateName)) await files.rename(`${folder}/${StateName}`, `${folder}/${ReplacedName}`)
  await finishReplacement(files, folder)
}

/**
 * Completes an interrupted replacement if the new state was complete, and the old state was moved away or did not exist. Otherwise undoes the
 * replacement.
 */
export async function finishReplacement(files: Files, folder: string): Promise<void> {
  const names = new Set(await files.list(folder))
  if (!names.has(StateName) && names.has(RestoredName)) {
    await files.rename(`${folder}/${RestoredName}`, `${folder}/${StateName}`)
    await files.syncFolder(folder)
    names.delete(RestoredName)
  }
  for (const name of [TemporaryName, RestoredName, ReplacedName]) if (names.has(name)) await files.remove(`${folder}/${name}`)
}
