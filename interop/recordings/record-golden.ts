/**
 * Records the responses of a real kube-apiserver to the requests of `interop/golden/<name>.ts`. `golden.test.ts` of the package `apiserver`
 * compares Capstan's responses with the recorded ones.
 *
 * Usage: `node interop/recordings/record-golden.ts policy --server https://127.0.0.1:6443 --token admin`. The server must be new. For
 * recordings that create pods, the service account `default` must exist in namespace `default`.
 */
import { writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { parseArgs } from 'node:util'
import type { Scenario, Sent, Step } from '../golden/step.ts'

interface RecordedResponse {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly text: string
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { server: { type: 'string' }, token: { type: 'string' } },
})
/** Prefixes of generated names: the values of `generateName`, and the prefix of the volumes with service account tokens. */
const prefixes = new Set(['kube-api-access-'])
for (const name of positionals) {
  const { scenarios } = (await import(`../golden/${name}.ts`)) as { scenarios: readonly Scenario[] }
  const recorded: unknown[] = []
  const variables = new Map<string, string>()
  for (const scenario of scenarios) {
    const steps: unknown[] = []
    for (const step of scenario.steps) steps.push(await record(step, variables))
    recorded.push({ name: scenario.name, steps })
  }
  const file = new URL(`../../packages/apiserver/testdata/golden/${name}.json`, import.meta.url)
  writeFileSync(file, `${JSON.stringify({ group: name, server: 'v1.36.2', scenarios: recorded }, undefined, 1)}\n`)
}

async function record(step: Step, variables: Map<string, string>): Promise<unknown> {
  const stepRequest = step.request ?? step.prepare
  if (step.sleepMs) await new Promise((resolve) => setTimeout(resolve, step.sleepMs))
  if (!stepRequest) return step
  const { generateName } = (stepRequest.body as { metadata?: { generateName?: string } } | undefined)?.metadata ?? {}
  if (generateName) prefixes.add(generateName)
  const response = await send(withVariables(stepRequest, variables))
  for (const [variable, path] of Object.entries(step.save ?? {})) {
    variables.set(variable, String(path.split('.').reduce((value: any, member) => value?.[member], JSON.parse(response.text))))
  }
  if (step.prepare) {
    if (response.status >= 300) throw new Error(`${stepRequest.method} ${stepRequest.path}: ${response.status} ${response.text}`)
    return step
  }
  return { ...step, response: withPlaceholders(response) }
}

function send({ method, path, headers, body }: Sent): Promise<RecordedResponse> {
  const defaults = {
    authorization: `Bearer ${values.token}`,
    accept: 'application/json',
    'user-agent': 'golden/v1',
    ...(body === undefined ? {} : { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' }),
  }
  return new Promise((resolve, reject) => {
    const sending = request(
      new URL(path, values.server),
      { method, headers: { ...defaults, ...headers }, rejectUnauthorized: false },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part: string) => (text += part))
        response.on('end', () =>
          resolve({ status: response.statusCode!, headers: response.headers as { [name: string]: string }, text }),
        )
      },
    )
    const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
    // Without this header the server would parse the body of a DELETE as the next request.
    if (text) sending.setHeader('content-length', Buffer.byteLength(text))
    sending.on('error', reject).end(text)
  })
}

function withVariables<T>(value: T, variables: Map<string, string>): T {
  return JSON.parse(JSON.stringify(value).replace(/\{\{(\w+)\}\}/g, (_, name: string) => variables.get(name) ?? '')) as T
}

/** In a JSON body, replaces values that differ between recordings with placeholders. Omits headers that are not compared. */
function withPlaceholders({ status, headers, text }: RecordedResponse): unknown {
  const recordedHeaders = Object.fromEntries(
    ['content-type', 'warning', 'retry-after'].flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  )
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return { status, headers: recordedHeaders, text }
  }
  return { status, headers: recordedHeaders, body: maskValues(body, '', prefixes) }
}

function maskValues(value: unknown, key: string, prefixes: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => maskValues(item, key, prefixes))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        name,
        // Descriptions of table columns are documentation, and are not compared.
        name === 'description' && 'priority' in value ? '<text>' : maskValues(member, name, prefixes),
      ]),
    )
  }
  if (typeof value === 'number' && /^(n|healthCheckN)odePort$/.test(key) && value >= 30_000) return '<n>'
  if (typeof value !== 'string') return value
  // The UIDs of users come from the token file of the recorded server.
  if (key === 'uid' && (value === '1' || value === 'uid-0')) return '<uid>'
  // Addresses and ports of Services are random.
  if (/^clusterIPs?$|^cells$/.test(key) && /^10(\.\d+){3}$/.test(value)) return '<ip>'
  if (key === 'cells' && /:3\d{4}\//.test(value)) return value.replaceAll(/:3\d{4}\//g, ':<n>/')
  if (key === 'resourceVersion' && value !== '') return '<rv>'
  if (key === 'continue' && value !== '') return '<continue>'
  if (key === 'cells' && /^(\d+[ydhms])+$/.test(value)) return '<age>'
  return [...prefixes]
    .reduce((text, prefix) => text.replace(new RegExp(`^${prefix}[a-z0-9]{5}$`), `${prefix}<rand5>`), value)
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uid>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<time>')
}
