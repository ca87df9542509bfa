/**
 * Sends the recorded requests of `packages/apiserver/testdata/golden` over HTTPS to `capstan apiserver` and, as a control, to a real
 * kube-apiserver. Both must respond as recorded; `golden-known.ts` lists the exceptions for Capstan. Run by `npm run interop -- golden`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '@capstan/kube'
import { issueCertificate } from '@capstan/kube/node'
import { knownDifferences } from '../packages/apiserver/src/http/golden-known.ts'
import type { ActualResponse } from '../packages/apiserver/src/http/golden-match.ts'
import {
  type GoldenRequest,
  type GoldenServer,
  readRecording,
  recordings,
  replay,
} from '../packages/apiserver/src/http/golden-replay.ts'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import type { RunningApiServer } from './processes/api-server.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import type { Outcome, Suite } from './shared/suite.ts'

export const goldenSuite: Suite = {
  shows: 'responses to recorded requests, from Capstan and from a real server',
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager'],
  run,
}

/** Steps in which the response of a real server differs from the recorded response, by recording and reason. */
const unrepeatable: { readonly [file: string]: { readonly [reason: string]: readonly string[] } } = {}

async function run(): Promise<Outcome> {
  let passed = 0
  let failed = 0
  const files = recordings()
  const replayRest = async (): Promise<void> => {
    for (let file = files.shift(); file !== undefined; file = files.shift()) {
      for (const { lines, ...outcome } of await Promise.all([
        replayOn(startCapstanApiServer, file),
        replayOn(startRealApiServer, file),
      ])) {
        for (const line of lines) console.log(line)
        failed += outcome.failed
        passed += outcome.passed
      }
    }
  }
  // Two files at once, because much of the time is spent waiting: for servers that start, for delays, and for the end of watches.
  await Promise.all([replayRest(), replayRest()])
  return { passed, failed }
}

async function replayOn(
  start: typeof startCapstanApiServer | typeof startRealApiServer,
  file: string,
): Promise<Outcome & { readonly lines: readonly string[] }> {
  await using apiServer = await start({ users: [{ name: 'bob', groups: ['devs'] }] })
  const known = Object.values((apiServer.name === 'capstan' ? knownDifferences : unrepeatable)[file] ?? {}).flat()
  const replayed = await replay(readRecording(file), await overHTTPS(apiServer, isRecordedHere(file)))
  const unexpected = Object.entries(replayed.failed).filter(([step]) => !known.includes(step))
  const knownCount = Object.keys(replayed.failed).length - unexpected.length
  const same = replayed.requests - unexpected.length - knownCount
  return {
    passed: replayed.requests - unexpected.length,
    failed: unexpected.length,
    lines: [
      `${file.padEnd(15)} ${apiServer.name.padEnd(11)} ${same} of ${replayed.requests} as recorded, ${knownCount} with known differences`,
      ...unexpected.map(([step, differences]) => `  ${step}\n    ${differences.join('\n    ')}`),
    ],
  }
}

/** Credentials of a request. */
interface Identity {
  readonly headers?: { readonly [name: string]: string }
  readonly agent?: Agent
}

/**
 * Returns headers that impersonate the administrator of the recordings, so that the `extra` fields of a user with a certificate have no
 * effect. Returns no headers for other users, and for requests that impersonate a user themselves.
 */
const asRecordedAdmin = (as: string, headers: { readonly [name: string]: string }): { [name: string]: string } =>
  as !== 'admin' || Object.keys(headers).some((name) => /^impersonate-/i.test(name))
    ? {}
    : { 'impersonate-user': 'kubernetes-admin', 'impersonate-group': 'system:masters' }

/** Milliseconds from the response headers of a watch to the requests that are sent during the watch, as in the recording. */
const DuringDelay = 700

/** Whether `recordings/record-golden.ts` made a recording. In such a recording the administrator has a token, and therefore a uid. */
const isRecordedHere = (file: string): boolean => existsSync(new URL(`golden/${file}.ts`, import.meta.url))

async function overHTTPS(apiServer: RunningApiServer, adminHasToken: boolean): Promise<GoldenServer> {
  const { ca, authority, url } = apiServer
  const certified = async (commonName: string, organization: string): Promise<Identity> => {
    const { certificate, key } = await issueCertificate(authority, systemClock, {
      commonName,
      organizations: [organization],
      usages: ['client'],
    })
    return { agent: new Agent({ ca, cert: certificate, key }) }
  }
  const withToken = (token: string): Identity => ({ headers: { authorization: `Bearer ${token}` } })
  const bob = /token: (\S+)/.exec(readFileSync(apiServer.kubeconfigOf('bob'), 'utf8'))![1]!
  const identities: { readonly [name: string]: Identity } = {
    admin: adminHasToken ? withToken(apiServer.token) : await certified('kubernetes-admin', 'system:masters'),
    alice: await certified('alice', 'devs'),
    bob: withToken(bob),
    badtoken: withToken('nobody'),
    anon: {},
  }

  return {
    sleep: (ms) => sleep(ms),
    send: ({ as, method, path, headers, body }: GoldenRequest, { maxMs, during }) =>
      new Promise<ActualResponse>((resolve, reject) => {
        const { headers: credentials = asRecordedAdmin(as, headers), agent = new Agent({ ca }) } = identities[as]!
        const sending = request(
          // Options instead of a URL, so that invalid paths are sent unchanged.
          {
            host: '127.0.0.1',
            port: new URL(url).port,
            path,
            method,
            agent,
            headers: { ...headers, ...credentials, ...(body === '' ? {} : { 'content-length': Buffer.byteLength(body) }) },
          },
          (response) => {
            let text = ''
            let timer: NodeJS.Timeout | undefined
            const end = () => {
              clearTimeout(timer)
              resolve({ status: response.statusCode!, headers: response.headers as ActualResponse['headers'], text })
            }
            const stop = () => {
              response.removeAllListeners('error').on('error', () => {})
              sending.destroy()
              end()
            }
            response
              .setEncoding('utf8')
              .on('data', (chunk: string) => (text += chunk))
              .on('end', end)
              .on('error', reject)
            // The remaining time begins after the requests of `during`, because these take longer on a busy machine.
            void sleep(DuringDelay)
              .then(during)
              .then(() => {
                if (!response.complete) timer = setTimeout(stop, maxMs - DuringDelay)
              })
              .catch(reject)
          },
        )
        sending.on('error', reject).end(body)
      }),
  }
}
