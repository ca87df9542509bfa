/**
 * The soak suite loads this module into `capstan up`. On SIGUSR2 it reads the faults from the file that CAPSTAN_SOAK_FAULTS
 * names: `slow`, the milliseconds that each fdatasync takes longer, and `step`, the milliseconds that are added to the result of
 * `Date.now`.
 * The faults affect only `capstan up`, and not other programs that use the clock and the disk of the machine.
 */
import { readFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'

let faults: { readonly slow?: number; readonly step?: number } = {}

process.on('SIGUSR2', () => {
  faults = JSON.parse(readFileSync(process.env.CAPSTAN_SOAK_FAULTS!, 'utf8')) as typeof faults
})

const now = Date.now.bind(Date)
Date.now = () => now() + (faults.step ?? 0)

// Node does not export the class FileHandle, so its prototype is read from an open file.
const handle = await open(process.execPath)
const fileHandlePrototype = Object.getPrototypeOf(handle) as FileHandle
await handle.close()
const { datasync } = fileHandlePrototype
fileHandlePrototype.datasync = async function (this: FileHandle) {
  if (faults.slow) await setTimeout(faults.slow)
  return datasync.call(this)
}
