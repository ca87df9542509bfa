/** Runs the sample extension as a program of its own, reached over TLS like any other. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { ExtensionConfig } from '@capstan/api'
import type { Client, Clock } from '@capstan/kube'
import { seconds } from '@capstan/kube'

export interface SampleExtension {
  readonly url: string
  /** Base64 of the PEM that its certificate is verified with. */
  readonly caBundle: string
  stop(): Promise<void>
}

const program = fileURLToPath(new URL('../../../examples/sample-extension/main.ts', import.meta.url))

/** Resolves when the extension serves. @throws when it ends or says nothing for 10 s */
export function startSampleExtension(clock: Clock, onExit: (why: string) => void): Promise<SampleExtension> {
  // Nothing is written to it: its standard input ends when this process does, however that happens. Ctrl-C is for this process
  // only: the extension must answer until the plane has stopped.
  const child = spawn(process.execPath, [program, '--dev', '--with-parent'], { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  const exited = new Promise<string>((resolve) => {
    child.once('error', (err) => resolve(err.message))
    child.once('exit', (code, signal) => resolve(signal ? `killed by ${signal}` : `exit code ${code}`))
  })
  let stopping = false
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = `${complaints}${text}`.slice(-2000)
  })

  return new Promise((resolve, reject) => {
    const timer = clock.schedule(seconds(10), () => {
      child.kill('SIGKILL')
      reject(new Error('Cannot start the sample extension: it said nothing for 10 s'))
    })
    void exited.then((why) => {
      timer.cancel()
      reject(new Error(`Cannot start the sample extension: ${why}${complaints && `: ${complaints.trim()}`}`))
      if (!stopping) onExit(why)
    })
    createInterface({ input: child.stdout }).once('line', (line) => {
      timer.cancel()
      const { url, caBundle } = JSON.parse(line) as { url: string; caBundle: string }
      resolve({
        url,
        caBundle,
        async stop() {
          stopping = true
          child.kill('SIGTERM')
          const late = clock.schedule(seconds(5), () => child.kill('SIGKILL'))
          await exited
          late.cancel()
        },
      })
    })
  })
}

/** Tells the plane where the extension is. Its port and certificate are new each time. */
export async function registerSampleExtension(
  client: Client,
  { url, caBundle }: Pick<SampleExtension, 'url' | 'caBundle'>,
): Promise<void> {
  await client.apply(
    ExtensionConfig,
    { metadata: { name: 'sample' }, spec: { clientConfig: { url, caBundle } } },
    { fieldManager: 'capstan-up', force: true },
  )
}
