/** A tape: recorded calls of hooks as JSON lines, which people and programs can read and replay. See docs/reference/tapes.md. */
import type { Hook } from '@capstan/api'
import { hookPath } from '@capstan/api'
import { isRecord } from '@capstan/kube'
import type { HookFailureCode } from '../client/hook-failed.ts'
import type { HookProblem } from '../client/hook-problems.ts'

/** The first line of a tape. */
export interface TapeHeader {
  readonly tape: typeof TapeFormat
  /** Format version. Readers support all earlier versions. */
  readonly version: number
  /** Start of the recording, RFC 3339. */
  readonly began: string
}

export const TapeFormat = 'capstan.dev/hook-calls'
export const TapeVersion = 1

/** A completed call, without secrets: each line after the first, except a line with the reason why the recording stopped. */
export interface TapedCall {
  readonly group: string
  /** Version of the hook for which the handler registered; request and response have the same version. */
  readonly version: string
  readonly hook: string
  /** `<handler>.<extensionconfig>`; absent for Discovery. */
  readonly handler?: string
  readonly extensionConfig: string
  /** URL of the handler, without query, user and password. */
  readonly url: string
  /** Start of the call, in RFC 3339 with milliseconds. */
  readonly started: string
  /** Duration in milliseconds. */
  readonly took: number
  /** Number of attempts to send the request. Default: 1. */
  readonly attempts?: number
  /** HTTP status; absent when there was no response. */
  readonly status?: number
  /** The request, with settings, but without apiVersion and kind. */
  readonly request: object
  /** The response, whose own `status` may be `Failure`; absent if there was no valid response. */
  readonly response?: object
  /** The reason why there was no valid response; otherwise absent. */
  readonly failure?: { readonly code: HookFailureCode; readonly problem: HookProblem; readonly message: string }
}

export interface Tape {
  readonly header: TapeHeader
  readonly calls: readonly (TapedCall & { readonly line: number })[]
  /** Reason why the recording stopped early. */
  readonly stopped?: string
  /** Whether the last line is incomplete, for example because the recorder was killed while it wrote. */
  readonly isLastLineIncomplete: boolean
}

/**
 * Error for a text that is not a tape, has an unsupported version, or has an invalid line. Also replaces errors of Node that do not name the
 * file of a tape, such as the error for a folder.
 */
export class TapeError extends Error {
  override readonly name = 'TapeError'
}

/** Parses a tape. @throws TapeError; for an invalid line after the first, the error names the line */
export function parseTape(text: string): Tape {
  const lines = text.split('\n')
  // The text after the last line break is empty, or an incomplete line.
  const last = lines.pop() ?? ''
  const [first] = lines
  if (first === undefined) throw new TapeError('not a tape: the first line is missing')
  const header = parseHeader(first)
  const calls: Tape['calls'][number][] = []
  let stopped: string | undefined
  for (const [index, text] of lines.entries()) {
    const line = index + 1
    if (line === 1 || text === '') continue
    const value = parseLine(text, line)
    if (typeof value.stopped === 'string') ({ stopped } = value as { stopped: string })
    else calls.push({ ...callIn(value, line), line })
  }
  return { header, calls, ...(stopped === undefined ? {} : { stopped }), isLastLineIncomplete: last !== '' }
}

/** Parses the first line of a tape. @throws TapeError */
export function parseHeader(line: string): TapeHeader {
  let header: unknown
  try {
    header = JSON.parse(line)
  } catch {
    // The error is thrown below.
  }
  if (!isRecord(header) || header.tape !== TapeFormat) {
    throw new TapeError(`not a tape: the first line is not {"tape": "${TapeFormat}", …}`)
  }
  const { version } = header
  if (!Number.isInteger(version) || Number(version) < 1)
    throw new TapeError(`version ${JSON.stringify(version)} is not a version of the tape format`)
  if (Number(version) > TapeVersion) {
    throw new TapeError(
      `it is a tape of version ${Number(version)}, and this release reads versions up to ${TapeVersion}: use a newer release`,
    )
  }
  return header as unknown as TapeHeader
}

function parseLine(text: string, line: number): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
  } catch {
    // The error is thrown below.
  }
  throw new TapeError(`line ${line} is damaged: expected an object in JSON`)
}

function callIn(value: Record<string, unknown>, line: number): TapedCall {
  const expect = (isRight: boolean, what: string) => {
    if (!isRight) throw new TapeError(`line ${line} is not a call: expected ${what}`)
  }
  for (const field of ['group', 'version', 'hook', 'extensionConfig', 'url', 'started'] as const) {
    expect(typeof value[field] === 'string', `${field} to be a string`)
  }
  const { url, handler, took, request, response, failure } = value
  expect(URL.canParse(url as string), 'url to be a URL')
  expect(handler === undefined || typeof handler === 'string', 'handler to be a string')
  expect(typeof took === 'number', 'took to be a number')
  expect(isRecord(request), 'request to be an object')
  expect(isRecord(response) !== isRecord(failure), 'either response or failure')
  for (const field of isRecord(failure) ? ['code', 'problem', 'message'] : []) {
    expect(typeof (failure as Record<string, unknown>)[field] === 'string', `failure.${field} to be a string`)
  }
  return value as unknown as TapedCall
}

/** Returns the handler's name on its server; empty for Discovery. */
export function shortHandler({ handler = '', extensionConfig }: Pick<TapedCall, 'handler' | 'extensionConfig'>): string {
  const suffix = `.${extensionConfig}`
  return handler.endsWith(suffix) ? handler.slice(0, -suffix.length) : handler
}

/** Returns the path of the call, below the prefix of the server's URL. */
export const pathOf = (call: TapedCall): string =>
  hookPath(
    { group: call.group, version: call.version, name: call.hook, singleton: call.handler === undefined } as Hook,
    shortHandler(call),
  )
