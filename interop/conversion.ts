/**
 * Compares conversions between v1beta2 and older API versions with upstream's conversions in Go: generated objects of every kind
 * and version, in both directions, and objects that a client of the older version changed and wrote back. The results must be equal
 * field by field.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { coreKinds } from '@capstan/api'
import {
  apiVersionOf,
  type DeclaredKind,
  equal,
  type GroupKind,
  type KindVersion,
  type KubeObject,
  messageOf,
} from '@capstan/kube'
import fc from 'fast-check'
import { objectsOf } from '../packages/api/src/conversion/objects.suite.ts'
import { Checks } from './processes/capstan-process.ts'
import type { Suite } from './shared/suite.ts'
import { toolPaths } from './shared/tools.ts'

/**
 * Number of generated objects, rounded up to an equal number for each version. CI uses this default;
 * `CAPSTAN_OBJECTS=20000 npm run interop -- conversion` sets another number.
 */
const ObjectsInCI = 1_250

export const conversionSuite: Suite = {
  shows: "conversions between API versions, compared with upstream's in Go",
  ci: true,
  tools: ['conversion-peer'],
  async run() {
    const checks = new Checks()
    const [program] = await toolPaths('conversion-peer')
    const total = Number(process.env.CAPSTAN_OBJECTS ?? ObjectsInCI)
    const seed = Number(process.env.CAPSTAN_SEED ?? 1)
    const pairs = coreKinds.flatMap((kind) => kind.versions.map((version) => ({ kind, version })))
    const peer = new Peer(program)
    let converted = 0
    try {
      // Half of the objects are of the older version, and half of the stored one.
      const each = Math.ceil(total / (pairs.length * 2))
      for (const { kind, version } of pairs) converted += await comparePair(peer, kind, version, { each, seed, checks })
      console.log(
        `${2 * each * pairs.length} generated objects, seed ${seed}: ${converted} conversions of ${pairs.length} versions compared`,
      )
    } finally {
      await peer.close()
    }
    return checks
  },
}

interface Comparison {
  /** Number of generated objects of each of the two versions. */
  readonly each: number
  readonly seed: number
  readonly checks: Checks
}

async function comparePair(
  peer: Peer,
  kind: DeclaredKind,
  version: KindVersion,
  { each, seed, checks }: Comparison,
): Promise<number> {
  const [old, stored] = [apiVersionOf(version.kind), apiVersionOf(kind)]
  let conversions = 0
  const compare = async (object: KubeObject, apiVersion: string): Promise<KubeObject | undefined> => {
    const theirs = await peer.convert(object, apiVersion)
    const ours = convertedByUs(kind, version, object, apiVersion)
    const same = 'object' in theirs && 'object' in ours && equal(ours.object, theirs.object)
    checks.check(`${object.apiVersion} ${kind.kind} converts to ${apiVersion} as upstream converts it`, same, {
      object,
      theirs,
      ours,
    })
    conversions++
    return 'object' in theirs ? theirs.object : undefined
  }
  for (const object of fc.sample(objectsOf(version.kind), { seed, numRuns: each })) await compare(object, stored)
  for (const [index, object] of fc.sample(objectsOf(kind), { seed, numRuns: each }).entries()) {
    const inOldVersion = await compare(object, old)
    if (!inOldVersion) continue
    await compare(inOldVersion, stored)
    await compare(changed(inOldVersion, index), stored)
  }
  return conversions
}

type Outcome = { readonly object: KubeObject } | { readonly error: string }

/** Converts with Capstan. References get the same fictitious version as in the response of conversion-peer. */
function convertedByUs(kind: DeclaredKind, version: KindVersion, object: KubeObject, apiVersion: string): Outcome {
  const apiVersionOf = ({ group }: GroupKind) => (group === '' ? 'v1beta9' : `${group}/v1beta9`)
  try {
    const isToStored = object.apiVersion === version.kind.group + '/' + version.kind.version
    const converted = isToStored ? version.toStored(object) : version.fromStored(object, { apiVersionOf })
    const result = { apiVersion, kind: kind.kind, ...converted }
    // Removes fields with the value undefined, which upstream's JSON does not have.
    return { object: JSON.parse(JSON.stringify(result)) as KubeObject }
  } catch (err) {
    return { error: messageOf(err) }
  }
}

/** Returns the object with some of its booleans and numbers changed or removed, as a client might do. `index` determines which ones. */
function changed(object: KubeObject, index: number): KubeObject {
  let count = 0
  const change = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(change)
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(
        Object.entries(value).flatMap(([name, field]) => {
          const isChanged = (typeof field === 'boolean' || typeof field === 'number') && (count++ + index) % 3 === 0
          if (!isChanged) return [[name, change(field)]]
          return index % 2 === 0 ? [] : [[name, typeof field === 'boolean' ? !field : 0]]
        }),
      )
    return value
  }
  const { metadata, ...body } = object
  return { ...(change(body) as object), metadata } as KubeObject
}

/** Runs upstream's conversions in a child process, with one line of JSON for each request and response. */
class Peer {
  readonly #child
  readonly #responses

  constructor(program: string) {
    this.#child = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#responses = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
  }

  async convert(object: KubeObject, apiVersion: string): Promise<Outcome> {
    this.#child.stdin.write(`${JSON.stringify({ apiVersion, object })}\n`)
    const { value, done } = await this.#responses.next()
    if (done) throw new Error('conversion-peer ended before it responded')
    return JSON.parse(value as string) as Outcome
  }

  async close(): Promise<void> {
    this.#child.stdin.end()
    if (this.#child.exitCode === null) await once(this.#child, 'exit')
  }
}
