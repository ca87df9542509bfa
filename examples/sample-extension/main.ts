/**
 * Serves the sample extension over TLS. Once it does it prints one line of JSON, with what an ExtensionConfig needs to know:
 * {"url": "https://127.0.0.1:40123", "caBundle": "LS0t…"}. What happens afterwards is logged to stderr. Ends on SIGTERM or SIGINT.
 */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { extensionServer, listen } from '@capstan/extension'
import { type LogFields, type Logger, messageOf, systemClock } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { sampleExtension } from './extension.ts'

const usage = `Usage: node main.ts [options]

  --host ADDRESS        address to listen on (127.0.0.1)
  --port N              port to listen on (any free one)
  --tls-cert-file FILE  certificate, PEM; one of its own is made when absent
  --tls-key-file FILE   key of the certificate, PEM
  --ca-file FILE        authority that signed the certificate, PEM: goes into caBundle
  --with-parent         end when standard input ends
`

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '0' },
      'tls-cert-file': { type: 'string' },
      'tls-key-file': { type: 'string' },
      'ca-file': { type: 'string' },
      'with-parent': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(usage)
    return
  }
  const port = Number(values.port)
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new Error(`--port ${values.port}: expected a number from 0 to 65535`)
  }
  const { certified, ca } = await certificateFrom(values, values.host)

  const log = logger({})
  const server = await listen(extensionServer(sampleExtension(), { log }), { host: values.host, port, ...certified })
  const caBundle = ca === undefined ? {} : { caBundle: Buffer.from(ca).toString('base64') }
  process.stdout.write(`${JSON.stringify({ url: server.url, ...caBundle })}\n`)

  const stop = () => void server.close().then(() => process.exit(0))
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
  if (values['with-parent']) process.stdin.resume().once('end', stop)
}

interface CertificateFlags {
  'tls-cert-file'?: string | undefined
  'tls-key-file'?: string | undefined
  'ca-file'?: string | undefined
}

async function certificateFrom(
  flags: CertificateFlags,
  host: string,
): Promise<{ certified: CertifiedKey; ca: string | undefined }> {
  const { 'tls-cert-file': certFile, 'tls-key-file': keyFile, 'ca-file': caFile } = flags
  if ((certFile === undefined) !== (keyFile === undefined)) throw new Error('--tls-cert-file and --tls-key-file go together')
  if (certFile !== undefined && keyFile !== undefined) {
    const certified = { certificate: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
    return { certified, ca: caFile === undefined ? undefined : readFileSync(caFile, 'utf8') }
  }
  const authority = await makeAuthority(systemClock, { commonName: 'sample-extension' })
  const names = /^[\d.]+$|:/.test(host) ? { ipAddresses: [host] } : { dnsNames: [host] }
  const certified = await issueCertificate(authority, systemClock, {
    commonName: 'sample-extension',
    usages: ['server'],
    ...names,
  })
  return { certified, ca: authority.certificate }
}

/** One line of JSON each, on stderr: stdout is for the program that started this one. */
function logger(bound: LogFields): Logger {
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}) => {
      const { err, ...rest } = fields
      const line = { level, message, ...bound, ...rest, ...(err === undefined ? {} : { err: messageOf(err) }) }
      process.stderr.write(`${JSON.stringify(line)}\n`)
    }
  const [debug, info, warn, error] = [() => {}, write('info'), write('warn'), write('error')]
  return { debug, info, warn, error, child: (fields) => logger({ ...bound, ...fields }) }
}

main().catch((err: unknown) => {
  process.stderr.write(`sample-extension: ${messageOf(err)}\n`)
  process.exitCode = 1
})
