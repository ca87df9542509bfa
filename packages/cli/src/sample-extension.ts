/** Runs the sample extension as a child process that serves over TLS with generated certificates. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { ExtensionConfig } from '@capstan/api'
import { keepOwnCertificate, type OwnCertificate } from '@capstan/extension'
import type { Client, Clock, Logger } from '@capstan/kube'
import { seconds, silent } from '@capstan/kube'
import type { CertifiedKey } from '@capstan/kube/node'
import { authorityFrom, publishAuthority } from './extension-authority.ts'

export interface SampleExtension {
  readonly url: string
  stop(): Promise<void>
}

export interface SampleExtensionOptions {
  readonly client: Client
  readonly clock: Clock
  /** Logger of the certificate's renewal. Default: nothing is logged. */
  readonly log?: Logger
  /** Called when the process ends before `stop` is called. */
  readonly onExit: (reason: string) => void
}

const program = fileURLToPath(new URL('../../../examples/sample-extension/main.ts', import.meta.url))

/** Secret with the certificate authority that signs the extension's certificate. */
const authoritySecret = { namespace: 'default', name: 'sample-extension-ca' }

/**
 * Starts the extension; resolves when it serves.
 *
 * @throws Error when it ends or is not ready within 10 s, or when the Secret with its certificate authority cannot be written
 */
export async function startSampleExtension({
  client,
  clock,
  log = silent,
  onExit,
}: SampleExtensionOptions): Promise<SampleExtension> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-sample-extension-'))
  let certificate: OwnCertificate | undefined
  const cleanUp = () => {
    certificate?.close()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    certificate = await keepOwnCertificate({
      commonName: 'sample-extension',
      ipAddresses: ['127.0.0.1'],
      clock,
      log,
      trust: (bundle) => publishAuthority(client, authoritySecret, bundle, 'capstan-up'),
      serve: (certified) => replaceFiles(folder, certified),
    })
    const { url, stop } = await startProgram(folder, clock, onExit)
    return { url, stop: () => stop().finally(cleanUp) }
  } catch (err) {
    cleanUp()
    throw err
  }
}

/**
 * Registers the extension in the management cluster, or updates its URL, because its port changes with each start. Core reads the
 * certificate authority from the Secret.
 */
export async function registerSampleExtension(client: Client, { url }: SampleExtension): Promise<void> {
  await client.apply(
    ExtensionConfig,
    { metadata: { name: 'sample', annotations: authorityFrom(authoritySecret) }, spec: { clientConfig: { url } } },
    { fieldManager: 'capstan-up', force: true },
  )
}

/** Replaces certificate and key atomically, as Kubernetes does for a mounted Secret. */
function replaceFiles(folder: string, { certificate, key }: CertifiedKey): void {
  const version = mkdtempSync(join(folder, '..version-'))
  writeFileSync(join(version, 'tls.crt'), certificate)
  writeFileSync(join(version, 'tls.key'), key, { mode: 0o600 })
  const link = join(folder, '..data')
  const previousVersion = existsSync(link) ? realpathSync(link) : undefined
  symlinkSync(version, `${link}_new`)
  renameSync(`${link}_new`, link)
  if (previousVersion !== undefined) return rmSync(previousVersion, { recursive: true })
  for (const file of ['tls.crt', 'tls.key']) symlinkSync(join('..data', file), join(folder, file))
}

function startProgram(
  folder: string,
  clock: Clock,
  onExit: (reason: string) => void,
): Promise<{ url: string; stop(): Promise<void> }> {
  const flags = ['--webhook-host', '127.0.0.1', '--webhook-port', '0', '--webhook-cert-dir', folder]
  const otherFlags = ['--health-addr', '0', '--diagnostics-address', '0', '--log-level', 'warn', '--with-parent']
  // With --with-parent, the extension exits when its stdin ends, which also happens when this process is killed. The extension is
  // detached so that it does not receive Ctrl-C, because it must respond until the management cluster has stopped.
  const child = spawn(process.execPath, [program, ...flags, ...otherFlags], { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  const exited = new Promise<string>((resolve) => {
    child.once('error', (err) => resolve(err.message))
    child.once('exit', (code, signal) => resolve(signal ? `killed by ${signal}` : `exit code ${code}`))
  })
  let stopping = false
  let stderrText = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderrText = `${stderrText}${text}`.slice(-2000)
  })

  return new Promise((resolve, reject) => {
    const timer = clock.schedule(seconds(10), () => {
      child.kill('SIGKILL')
      reject(new Error('Cannot start the sample extension: it printed nothing for 10 s'))
    })
    void exited.then((reason) => {
      timer.cancel()
      reject(new Error(`Cannot start the sample extension: ${reason}${stderrText && `: ${stderrText.trim()}`}`))
      if (!stopping) onExit(reason)
    })
    createInterface({ input: child.stdout }).once('line', (line) => {
      timer.cancel()
      const { url } = JSON.parse(line) as { url: string }
      resolve({
        url,
        async stop() {
          stopping = true
          child.kill('SIGTERM')
          const killTimer = clock.schedule(seconds(5), () => child.kill('SIGKILL'))
          await exited
          killTimer.cancel()
        },
      })
    })
  })
}
