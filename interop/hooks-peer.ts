/**
 * Compares Capstan's hooks with `hooks-peer`, a Go program with upstream's types (`scripts/tools/hooks-peer`): the decoding of 100,000
 * responses (values and errors), the results of patches, and the OpenAPI document of the hooks. `packages/api/testdata` contains a recording
 * of upstream's document, and `npm test` compares Capstan's document with the recording.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Hook, hookCatalog } from '@capstan/api'
import { equal, isRecord } from '@capstan/kube'
import fc from 'fast-check'
import { answerBodies } from '../packages/extension/src/wire/answer-bodies.suite.ts'
import { patchBetween, type PatchFormat } from '../packages/extension/src/author/document-patch.ts'
import { decodeWire, WireError } from '../packages/extension/src/wire/wire.ts'
import { Checks } from './processes/capstan-process.ts'
import { recordedForm, recording } from './recordings/record-hooks.ts'
import type { Suite } from './shared/suite.ts'
import { output, toolPaths } from './shared/tools.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

const ResponseCount = 100_000
/** Number of responses in memory at a time, and number of pairs of documents between which patches of a format are computed. */
const Batch = 10_000

export const hooksPeerSuite: Suite = {
  shows: "responses, patches and the OpenAPI document of hooks, compared with upstream's types in Go",
  ci: true,
  tools: ['hooks-peer'],
  async run() {
    const checks = new Checks()
    const [peer] = await toolPaths('hooks-peer')
    const document = recordedForm(await output(peer, ['openapi'], { cwd: '.' }))
    checks.check("the recorded OpenAPI document equals upstream's", document === readFileSync(recording, 'utf8'))
    await comparePublishedResponses(peer, checks)
    await compareRecordedPatches(peer, checks)
    for (const format of ['JSONPatch', 'JSONMergePatch'] as const) await compareComputedPatches(peer, format, checks)
    const seed = Number(process.env.CAPSTAN_SEED ?? 1)
    for (let batch = 0; batch < ResponseCount / Batch; batch++) await compareResponses(peer, seed + batch, checks)
    checks.check(
      'for random responses the client returns a value that matches the schema or one of its errors, and its two decoders agree',
      await decodesRandomResponses(),
    )
    return checks
  },
}

/** Runs the property tests of `wire.test.ts` with at least `ResponseCount` responses each. In `npm test` they check 1,500 and 2,000. */
async function decodesRandomResponses(): Promise<boolean> {
  const args = ['node_modules/vitest/vitest.mjs', 'run', 'packages/extension/src/wire/wire.test.ts', '--testTimeout=600000']
  const env = { ...process.env, CAPSTAN_FUZZ: String(Math.ceil(ResponseCount / 1500)), NO_COLOR: '1' }
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], env })
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  return code === 0
}

interface SampleResponse {
  readonly hook: Hook
  readonly body: Uint8Array
}

type DecodeResult = { readonly value: unknown } | { readonly error: string }

const sampleResponses = fc.oneof(
  ...hookCatalog.map((hook) => answerBodies(hook.response.json).map((body): SampleResponse => ({ hook, body }))),
)

async function compareResponses(peer: string, seed: number, checks: Checks): Promise<void> {
  const samples = fc.sample(sampleResponses, { seed, numRuns: Batch })
  const theirs = await decodeWithPeer(peer, samples)
  const ours = samples.map(decoded)
  let values = 0
  let earlyCount = 0
  samples.forEach(({ hook, body }, index) => {
    const [ourResult, goResult] = [ours[index]!, theirs[index]!].map(comparable)
    if ('value' in theirs[index]!) values++
    const isRejectedEarlier = 'value' in theirs[index]! && tooLarge.test(ourResult!)
    if (isRejectedEarlier) earlyCount++
    checks.check(`a response of ${hook.name} is decoded as Go decodes it`, ourResult === goResult || isRejectedEarlier, {
      seed,
      body: Buffer.from(body).toString('latin1'),
      ours: ourResult,
      go: goResult,
    })
  })
  const earlyText =
    earlyCount === 0
      ? ''
      : `, ${earlyCount} contain a number too large for a double in a field without a type: Capstan rejects it, Go keeps its text`
  console.log(`${Batch} responses, seed ${seed}: ${values} have a value, ${Batch - values} an error${earlyText}`)
}

/**
 * Error of Capstan's decoder for a number that is too large for a double, in a value without a schema. Go keeps the text, and fails only
 * when the value is read.
 */
const tooLarge = /^\{"error":"json: cannot unmarshal number \S+ into Go value of type float64"\}$/

/**
 * Checks that Go's decoder accepts or rejects each response with status 200 in `packages/extension/fixtures` as `index.json` describes.
 * Authors of extensions in other languages use these responses.
 */
async function comparePublishedResponses(peer: string, checks: Checks): Promise<void> {
  const cannotDecode = 'http call failed: failed to decode response: '
  const folder = new URL('../packages/extension/fixtures/', import.meta.url)
  const read = (file: string): string => readFileSync(new URL(file, folder), 'utf8')
  const { accepted, refused } = JSON.parse(read('index.json')) as Record<string, { hook: string; file: string; error: string }[]>
  const published = [
    ...accepted!.map((entry) => ({ ...entry, body: read(entry.file), error: '' })),
    ...refused!.map((entry) => ({ ...entry, ...(JSON.parse(read(entry.file)) as { status: number; body: string }) })),
  ].filter((entry) => !('status' in entry) || entry.status === 200)
  const hookNamed = (name: string): Hook => hookCatalog.find((hook) => hook.name === name)!
  const samples = published.map(({ hook, body }) => ({ hook: hookNamed(hook), body: new TextEncoder().encode(body) }))
  const theirs = await decodeWithPeer(peer, samples)
  published.forEach(({ file, error }, index) => {
    const expected = error.startsWith(cannotDecode) ? error.slice(cannotDecode.length) : undefined
    const answer = theirs[index]!
    const go = 'error' in answer ? answer.error : undefined
    checks.check(`Go decodes the published ${file} as the index describes`, expected === go, { expected, go })
  })
}

interface RecordedPatch {
  readonly type: PatchFormat
  readonly patch: string
  readonly value?: unknown
  readonly error?: string
}

/** Compares the recorded results of patches, which `npm test` uses, with those of upstream's library. */
async function compareRecordedPatches(peer: string, checks: Checks): Promise<void> {
  const recorded = readFileSync(new URL('../packages/api/testdata/patches.json', import.meta.url), 'utf8')
  const { document, patches } = JSON.parse(recorded) as { document: object; patches: RecordedPatch[] }
  const theirs = await runPeer<DecodeResult>(
    peer,
    'patch',
    patches.map((recordedPatch) => ({ document, ...recordedPatch })),
  )
  patches.forEach(({ type, patch, ...answer }, index) => {
    checks.check(`the ${type} ${patch} has the recorded result`, equal(answer, theirs[index]), { answer, go: theirs[index] })
  })
}

/** Computes patches from one document to another, and checks that upstream's library gets the second document from the first. */
async function compareComputedPatches(peer: string, type: PatchFormat, checks: Checks): Promise<void> {
  const leaf = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.boolean(), fc.constantFrom('', 'x', 'ü'), fc.constant(null))
  const names = fc.constantFrom('a', 'b', 'c/d', 'e~f', '~1', '', '-', '0', 'constructor')
  const { spec } = fc.letrec((tie) => ({
    any: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('any'), { maxLength: 5 }), tie('spec')),
    spec: fc.dictionary(names, tie('any'), { maxKeys: 4 }),
  }))
  const edits = fc.sample(fc.tuple(spec, spec), { seed: 1, numRuns: Batch }).flatMap(([from, to]) => {
    try {
      const patch = patchBetween({ spec: from }, { spec: to }, type)
      return patch
        ? [{ document: { spec: from }, type, patch: Buffer.from(patch.patch, 'base64').toString(), edited: { spec: to } }]
        : []
    } catch {
      // A merge patch cannot express null, so computing the patch fails.
      return []
    }
  })
  const theirs = await runPeer<{ value?: unknown }>(peer, 'patch', edits)
  edits.forEach(({ edited, ...request }, index) => {
    const { value } = theirs[index]!
    checks.check(`a computed ${type} results in the edited document`, equal(value, edited), {
      ...request,
      edited,
      go: theirs[index],
    })
  })
  console.log(`${edits.length} computed patches of type ${type}`)
}

const decodeWithPeer = (peer: string, samples: readonly SampleResponse[]): Promise<DecodeResult[]> =>
  runPeer(
    peer,
    'decode',
    samples.map(({ hook, body }) => ({ hook: hook.name, body: Buffer.from(body).toString('base64') })),
  )

async function runPeer<T>(peer: string, command: string, requests: readonly object[]): Promise<T[]> {
  const child = spawn(peer, [command], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(requests.map((request) => JSON.stringify(request)).join('\n'))
  const text = await child.stdout.setEncoding('utf8').reduce((all: string, part: string) => all + part, '')
  const responses = text.trimEnd().split('\n')
  if (responses.length !== requests.length) throw new Error(`${requests.length} requests got ${responses.length} responses`)
  return responses.map((line) => JSON.parse(line) as T)
}

function decoded({ hook, body }: SampleResponse): DecodeResult {
  try {
    return { value: decodeWire(body, hook.response, `${hook.name}Response`, 'response') }
  } catch (err) {
    // Any other error is a bug. The stack in the result makes the comparison fail.
    return { error: err instanceof WireError ? err.message : String((err as Error).stack) }
  }
}

const comparable = (answer: DecodeResult): string =>
  JSON.stringify('error' in answer ? answer : { value: withoutZeroValues(answer.value) })

/** Removes zero values, which Go omits or writes depending on the field, and normalizes the base64 text of patches. */
function withoutZeroValues(value: unknown, field?: string): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutZeroValues(item) ?? null)
  if (typeof value === 'string' && field === 'patch') return Buffer.from(value, 'base64').toString('base64')
  if (!isRecord(value)) return value
  const members = Object.keys(value)
    .sort()
    .map((key) => [key, withoutZeroValues(value[key], key)] as const)
    .filter(([, member]) => !isZero(member))
  return Object.fromEntries(members)
}

const isZero = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  value === 0 ||
  value === false ||
  (Array.isArray(value) && value.length === 0) ||
  (isRecord(value) && Object.keys(value).length === 0)
