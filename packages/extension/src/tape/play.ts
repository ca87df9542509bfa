/** Sends the responses of a tape (recorded hook calls) to core, to repeat a run without the extension. */
import { differences, differenceText } from '../test-kit/differences.ts'
import { HookFailed } from '../client/hook-failed.ts'
import type { HookTransport, HttpResponse } from '../client/transport.ts'
import { redact } from './deny-list.ts'
import { normalizeValue, replaceValues, valueMapping } from './normalize.ts'
import { pathOf, type Tape } from './tape.ts'

type Taped = Tape['calls'][number]

interface ComparableCall {
  readonly call: Taped
  readonly normalized: string
  isPlayed: boolean
}

/**
 * Returns a transport with the responses of a tape. A call of the tape is selected by ExtensionConfig, hook, version, handler and request;
 * values that differ from run to run are ignored (uids, times, generated names; docs/reference/tapes.md has the list). Equal calls get the
 * responses in the order of the tape, and then the last one repeatedly, since core may call more often. In a response, uids, times and
 * generated names of the recorded request are replaced with those of the request. A recorded failure fails the call again. A request that is
 * not on the tape fails with `not-registered`, which no failure policy ignores.
 */
export function tapeTransport(tape: Tape): HookTransport {
  const byHandler = Map.groupBy(
    tape.calls.map((call): ComparableCall => ({ call, normalized: normalizedText(call.request), isPlayed: false })),
    ({ call }) => pathOf(call),
  )
  return {
    async post({ url, extensionConfig }, body, signal) {
      signal.throwIfAborted()
      const { apiVersion: _a, kind: _k, ...request } = JSON.parse(body) as Record<string, unknown>
      const clean = redact(request)
      const [path] = [...byHandler.keys()].filter((path) => url.pathname.endsWith(path))
      const handlerCalls = (path === undefined ? [] : byHandler.get(path)!).filter(
        ({ call }) => extensionConfig === undefined || call.extensionConfig === extensionConfig,
      )
      const normalized = normalizedText(clean)
      const equalCalls = handlerCalls.filter((call) => call.normalized === normalized)
      const next = equalCalls.find(({ isPlayed }) => !isPlayed) ?? equalCalls.at(-1)
      if (!next) throw notOnTape(url, extensionConfig, clean, handlerCalls)
      next.isPlayed = true
      const { response, failure } = next.call
      if (failure) throw new HookFailed(failure.code, failure.message, { problem: failure.problem })
      return answer(replaceValues(response, valueMapping(next.call.request, request)))
    },
    close() {},
  }
}

const normalizedText = (request: object): string => JSON.stringify(normalizeValue(request))

const answer = (response: unknown): HttpResponse => ({
  status: 200,
  body: chunks(new TextEncoder().encode(JSON.stringify(response))),
})

async function* chunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/**
 * Returns the error for a request that is not on the tape. The message names the most similar call, its first difference and the number of
 * further differences, if the tape has calls of the handler.
 */
function notOnTape(
  url: URL,
  extensionConfig: string | undefined,
  request: object,
  handlerCalls: readonly ComparableCall[],
): HookFailed {
  const ofConfig = extensionConfig === undefined ? '' : ` of ExtensionConfig ${extensionConfig}`
  const head = `the tape has no response for ${url.pathname}${ofConfig}`
  if (handlerCalls.length === 0) return new HookFailed('not-registered', `${head}: it has no call of this handler`)
  const nearest = handlerCalls
    .map(({ call }) => ({ call, differing: differences(normalizeValue(call.request), normalizeValue(request)) }))
    .reduce((best, one) => (one.differing.length < best.differing.length ? one : best))
  const [first, ...otherDifferences] = nearest.differing
  const others = otherDifferences.length === 0 ? '' : ` (and ${otherDifferences.length} more)`
  const nearestText = `line ${nearest.call.line}: request.${differenceText(first!, ['on the tape', 'now'])}${others}`
  return new HookFailed(
    'not-registered',
    `${head}: the request is not among its ${handlerCalls.length} calls; the most similar one is ${nearestText}`,
  )
}

/** The parts of an ExtensionConfig that core needs to call the handlers of a tape. */
export interface TapedConfig {
  readonly name: string
  readonly url: string
  readonly settings: { readonly [name: string]: string }
}

/** Returns the ExtensionConfigs of the calls on a tape, with the settings common to their calls. */
export function tapedConfigs({ calls }: Tape): TapedConfig[] {
  const byConfig = Map.groupBy(calls, ({ extensionConfig }) => extensionConfig)
  return [...byConfig].map(([name, [first, ...furtherCalls]]) => {
    const settings = [first!, ...furtherCalls].filter(({ handler }) => handler !== undefined).map(settingsOf)
    const common = Object.entries(settings[0] ?? {}).filter(([key, value]) =>
      settings.every((callSettings) => callSettings[key] === value),
    )
    return { name, url: new URL(first!.url).origin, settings: Object.fromEntries(common) }
  })
}

const settingsOf = ({ request }: Taped): { readonly [name: string]: string } =>
  (request as { settings?: { [name: string]: string } }).settings ?? {}
