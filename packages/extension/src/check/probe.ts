/** Calls the handlers of an extension with variants of the same requests and records their responses, which `findings.ts` evaluates. */
import { Discovery, type Hook } from '@capstan/api'
import { type Clock, draft, isRecord, messageOf, setMember, sleep } from '@capstan/kube'
import { callHook } from '../test-kit/call-hook.ts'
import type { Extension, Handler } from '../author/define-extension.ts'
import { differences } from '../test-kit/differences.ts'
import { fixture } from '../test-kit/fixtures.ts'
import { HookFailed } from '../client/hook-failed.ts'
import { patchedRequest } from '../test-kit/patched-request.ts'

/** A request in addition to the fixtures. */
export interface CheckRequest {
  readonly hook: string
  /** Name of the handler on its server. Absent: every handler of the hook. */
  readonly handler?: string
  readonly request: object
  /** Source of the request, for messages: `line 4 of calls.tape`. */
  readonly from: string
}

/** Result of one call. */
export type CallResult = { readonly response: object } | { readonly problem: string; readonly message: string }

/** Results of a handler for one request. */
export interface Observation {
  readonly hook: string
  /** Name of the handler; empty for discovery. */
  readonly handler: string
  readonly from: string
  readonly request: object
  readonly first: CallResult
  /** Result of a second call with the same request. */
  readonly second: CallResult
  /**
   * Result of a call with items, variables and object members in reverse order. Absent if the request has neither items nor
   * variables.
   */
  readonly reordered?: CallResult
  /**
   * The request with the patches of the first response applied, and the result for this request. Absent for hooks without
   * patches, and if the first response is not successful.
   */
  readonly patched?: { readonly request: object; readonly result: CallResult }
  /**
   * Paths at which the handler changed its request. Only the first call that changed its request and did not throw is recorded; it may be
   * a call with a variant of the request.
   */
  readonly mutated: readonly string[]
}

export interface ProbeOptions {
  /** Settings that are added to the fixtures of handlers, but not to Discovery or to the additional requests. */
  readonly settings?: { readonly [name: string]: string }
  /** Requests in addition to the fixtures. Default: none. */
  readonly requests?: readonly CheckRequest[]
  /** Clock for timeouts, and for a pause between the first and the second calls. */
  readonly clock: Clock
}

export interface ProbeResults {
  readonly observations: readonly Observation[]
  /**
   * Handlers, as `<hook> of <name>`, that were not called: no valid request could be derived from the declaration of their hook, and no
   * additional request was for them.
   */
  readonly uncalled: readonly string[]
}

/** Calls Discovery and the handlers of the extension with the fixtures, the additional requests, and variants of both. */
export async function probe(extension: Extension, { settings, requests = [], clock }: ProbeOptions): Promise<ProbeResults> {
  const mutated = new Map<Case, readonly string[]>()
  const callOnce = async (probeCase: Case, request: object): Promise<CallResult> => {
    const { hook, handler } = probeCase
    const record = (paths: readonly string[]) => {
      if (!mutated.has(probeCase)) mutated.set(probeCase, paths)
    }
    const recording = { ...extension, handlers: extension.handlers.map((original) => recordMutations(original, record)) }
    try {
      return {
        response: await callHook<Hook>(recording, hook, draft(request), { clock, ...(handler === '' ? {} : { handler }) }),
      }
    } catch (err) {
      if (!(err instanceof HookFailed)) throw err
      const threw = err.cause === undefined ? undefined : messageOf(err.cause)
      return threw === undefined ? { problem: err.problem, message: err.message } : { problem: 'Threw', message: threw }
    }
  }
  const cases = casesOf(extension, settings, requests)
  const first = await inSequence(cases, (probeCase) => callOnce(probeCase, probeCase.request))
  // After this pause, responses that depend on the current time in milliseconds differ.
  await sleep(clock, 5)
  const second = await inSequence(cases, (probeCase) => callOnce(probeCase, probeCase.request))
  const reordered = await inSequence(cases, async (probeCase) => {
    const reversed = reversedRequest(probeCase.request)
    return reversed && callOnce(probeCase, reversed)
  })
  const patched = await inSequence(cases, async (probeCase, index) => {
    const result = first[index]!
    if (!('response' in result) || (result.response as { status?: string }).status !== 'Success') return undefined
    const request = patchedRequest(probeCase.hook, probeCase.request, result.response)
    return request === probeCase.request ? undefined : { request, result: await callOnce(probeCase, request) }
  })
  const observations = cases.map((probeCase, index) => ({
    hook: probeCase.hook.name,
    handler: probeCase.handler,
    from: probeCase.from,
    request: probeCase.request,
    first: first[index]!,
    second: second[index]!,
    ...(reordered[index] ? { reordered: reordered[index] } : {}),
    ...(patched[index] ? { patched: patched[index] } : {}),
    mutated: mutated.get(probeCase) ?? [],
  }))
  const called = new Set(cases.map(({ handler }) => handler))
  const uncalled = extension.handlers.filter(({ name }) => !called.has(name)).map(({ hook, name }) => `${hook.name} of ${name}`)
  return { observations, uncalled }
}

interface Case {
  readonly hook: Hook
  readonly handler: string
  readonly from: string
  readonly request: object
}

function casesOf({ handlers }: Extension, settings: ProbeOptions['settings'], requests: readonly CheckRequest[]): Case[] {
  const withSettings = (request: object) => (settings ? { ...request, settings } : request)
  const handlerCases = handlers.flatMap(({ hook, name }): Case[] => {
    const matching = requests.filter((candidate) => candidate.hook === hook.name && (candidate.handler ?? name) === name)
    return [
      ...fixturesOf(hook).map((request) => ({ hook, handler: name, from: 'the fixture', request: withSettings(request) })),
      ...matching.map(({ from, request }) => ({ hook, handler: name, from, request })),
    ]
  })
  return [{ hook: Discovery, handler: '', from: 'the fixture', request: {} }, ...handlerCases]
}

/** Returns a list with the fixture of a hook; an empty list if no valid request can be derived from its declaration. */
function fixturesOf(hook: Hook): object[] {
  try {
    return [fixture(hook) as object]
  } catch {
    return []
  }
}

async function inSequence<T, R>(values: readonly T[], act: (value: T, index: number) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (const [index, value] of values.entries()) results.push(await act(value, index))
  return results
}

/** Wraps a handler so that `record` gets the paths at which it changes its request. */
const recordMutations = (handler: Handler, record: (paths: readonly string[]) => void): Handler => ({
  ...handler,
  async handle(call) {
    const { request } = call as { request: object }
    const original = draft(request)
    const response = await handler.handle(call)
    const paths = differences(original, request).map(({ path }) => path)
    if (paths.length > 0) record(paths)
    return response
  },
})

/**
 * Returns the request with items, variables and object members in reverse order, which must not change the response. Returns `undefined`
 * if the request has neither items nor variables.
 */
function reversedRequest(request: object): object | undefined {
  const { items, variables } = request as { items?: unknown; variables?: unknown }
  if (!Array.isArray(items) && !Array.isArray(variables)) return undefined
  return reverseValue(request, true) as object
}

function reverseValue(value: unknown, isTop = false): unknown {
  if (Array.isArray(value)) return value.map((item) => reverseValue(item))
  if (!isRecord(value)) return value
  const result: Record<string, unknown> = {}
  for (const key of Object.keys(value).reverse()) {
    const member = value[key]
    const isUnordered = Array.isArray(member) && (key === 'variables' || (isTop && key === 'items'))
    setMember(result, key, isUnordered ? member.map((item) => reverseValue(item)).reverse() : reverseValue(member))
  }
  return result
}
