/**
 * Writes hook calls, when they end, to a tape: a file of recorded calls. No call waits for a write. A failed write stops the recording, not
 * the program.
 */
import type { Clock } from '@capstan/kube'
import { messageOf, writeJSON } from '@capstan/kube'
import type { CallObserver, ObservedCall } from '../client/observed-call.ts'
import { redact, redactText } from './deny-list.ts'
import { type TapedCall, TapeFormat, type TapeHeader, TapeVersion } from './tape.ts'

/** The file of a tape. */
export interface TapeFile {
  /** Length of the complete lines that the file already has; 0 for a new tape. */
  readonly bytes: number
  append(text: string): Promise<void>
  close(): Promise<void>
}

export interface RecorderOptions {
  readonly clock: Clock
  /** Called with the reason when the recording stops early, and for the first call that cannot be recorded. */
  report(problem: string): void
  /** Approximate maximum size of the tape in bytes. Default: 64 MiB. */
  readonly maxBytes?: number
}

export interface Recorder {
  readonly observe: CallObserver
  /** Closes the file. Resolves after the recorded calls are written, or the recording has stopped because of an error. */
  close(): Promise<void>
}

export const defaultTapeBytes = 64 * 1024 * 1024

/** Maximum length, in UTF-16 units, of the text that may wait to be written to the file. */
const MaxPending = 16 * 1024 * 1024

export function createRecorder(file: TapeFile, { clock, report, maxBytes = defaultTapeBytes }: RecorderOptions): Recorder {
  let bytes = file.bytes
  let pending = ''
  let isStopped = false
  let hasReportedSkip = false
  let writing: Promise<void> | undefined

  const write = async () => {
    while (pending !== '') {
      const text = pending
      pending = ''
      await file.append(text)
    }
  }
  const flush = () => {
    writing ??= write()
      .catch((err: unknown) => {
        pending = ''
        if (!isStopped) report(`Calls of hooks are no longer recorded: ${messageOf(err)}`)
        isStopped = true
      })
      .finally(() => {
        writing = undefined
        if (pending !== '') flush()
      })
  }
  const put = (line: object) => {
    const text = `${writeJSON(line)}\n`
    bytes += Buffer.byteLength(text)
    pending += text
    flush()
  }
  const stop = (reason: string) => {
    isStopped = true
    put({ stopped: reason })
    report(`Calls of hooks are no longer recorded: ${reason}`)
  }
  if (bytes === 0)
    put({ tape: TapeFormat, version: TapeVersion, began: new Date(clock.now()).toISOString() } satisfies TapeHeader)

  return {
    observe(call) {
      if (isStopped) return
      try {
        const taped = tapedCall(call)
        const { length } = writeJSON(taped)
        if (bytes + length > maxBytes) stop(`the tape has reached its limit of ${maxBytes} bytes`)
        else if (pending.length + length > MaxPending) stop('the disk is too slow for the recording')
        else put(taped)
      } catch (err) {
        // For example, the response is nested too deeply to be redacted.
        if (!hasReportedSkip) report(`A call of ${call.hook.name} is not recorded: ${messageOf(err)}`)
        hasReportedSkip = true
      }
    },
    async close() {
      while (writing) await writing
      await file.close()
    },
  }
}

/** Converts a call to its record on a tape, with redacted secrets. */
export function tapedCall(call: ObservedCall): TapedCall {
  const { hook, announcedVersion, handler, extensionConfig, url, started, took, attempts, code, request, outcome } = call
  return {
    group: hook.group,
    version: announcedVersion,
    hook: hook.name,
    ...(handler === undefined ? {} : { handler }),
    extensionConfig,
    url: redactText(`${url.origin}${url.pathname}`),
    started: new Date(started).toISOString(),
    took,
    ...(attempts === 1 ? {} : { attempts }),
    ...(code === undefined ? {} : { status: code }),
    request: redact(request),
    ...(outcome.kind === 'response'
      ? { response: redact(outcome.response) }
      : { failure: { code: outcome.code, problem: outcome.problem, message: redactText(outcome.message) } }),
  }
}
