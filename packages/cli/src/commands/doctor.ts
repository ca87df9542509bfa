import { readFile } from 'node:fs/promises'
import { get } from 'node:https'
import { createClient, isRecord, messageOf, systemClock, systemRandom } from '@capstan/kube'
import { type ClusterAccess, httpsTransport } from '@capstan/kube/node'
import { type ProviderName, ProviderNames } from '@capstan/lab'
import { Command, Option } from 'commander'
import { examine, type Examination } from '../doctor/examine.ts'
import { ExitCodes, type Io } from '../io.ts'
import { type AccessFlags, managementAccess, withAccess } from '../management-access.ts'
import { table } from '../output/table.ts'
import { providerNames } from '../manager/provider-names.ts'

interface Options extends AccessFlags {
  readonly providers: ProviderName[]
  readonly leaderElectNamespace: string
  readonly output: 'table' | 'json'
}

/** `capstan doctor`: checks the preconditions of `capstan manager` in a management cluster. */
export const doctorCommand = (io: Io, finish: (code: number) => void): Command =>
  withAccess(new Command('doctor'))
    .description(
      'Check that a management cluster has what the manager needs: permissions, kinds, versions, certificates, webhooks',
    )
    .addOption(
      new Option('--providers <names>', 'providers that the manager runs, separated by commas')
        .argParser(providerNames)
        .default([...ProviderNames], ProviderNames.join(',')),
    )
    .option('--leader-elect-namespace <namespace>', 'namespace of the Lease', 'capi-system')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['table', 'json']).default('table'))
    .addHelpText('after', '\nExit code 1 when a finding is an error, 2 on wrong usage.')
    .action(async (options: Options) => {
      const { access } = await managementAccess(options, io.env)
      const transport = httpsTransport(access, { clock: systemClock, random: systemRandom, userAgent: 'capstan' })
      try {
        const examination = await examine({
          client: createClient(transport),
          kubernetesVersion: await kubernetesVersion(access),
          clock: systemClock,
          providers: options.providers,
          namespace: options.leaderElectNamespace,
          signal: io.signal,
        })
        for (const line of outputLines(examination, options.output)) io.out(line)
        const hasErrors = examination.findings.some(({ severity }) => severity === 'error')
        finish(hasErrors ? ExitCodes.failed : ExitCodes.done)
      } finally {
        transport.close()
      }
    })

/**
 * Returns the Kubernetes version of the server, or the text of an error if the server is unreachable or returns no version. Sends
 * the user's credentials, because a server may reject anonymous requests. Does not use a `Transport`, which supports only requests
 * for resources: the version is not a resource.
 */
export async function kubernetesVersion(access: ClusterAccess): Promise<string> {
  const { server, ca, servername, insecure, certificate, key, tokenFile, basic } = access
  const identity = certificate !== undefined && key !== undefined ? { cert: certificate, key } : {}
  const token = tokenFile === undefined ? access.token : (await readFile(tokenFile, 'utf8')).trim()
  const options = {
    ...(ca ? { ca } : {}),
    ...(servername === undefined ? {} : { servername }),
    ...identity,
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
    ...(basic ? { auth: `${basic.username}:${basic.password}` } : {}),
    rejectUnauthorized: insecure !== true,
    timeout: 10_000,
  }
  return new Promise((resolve) => {
    const request = get(`${server.replace(/\/$/, '')}/version`, options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        if (text.length < 10_000) text += part
      })
      response.on('end', () => {
        try {
          const body: unknown = JSON.parse(text)
          resolve(isRecord(body) && typeof body.gitVersion === 'string' ? body.gitVersion : `HTTP status ${response.statusCode}`)
        } catch (err) {
          resolve(messageOf(err))
        }
      })
      response.once('error', (err) => resolve(messageOf(err)))
    })
    request.once('timeout', () => request.destroy(new Error('no response within 10 s')))
    request.once('error', (err) => resolve(messageOf(err)))
  })
}

function outputLines({ findings, checked }: Examination, output: Options['output']): string[] {
  if (output === 'json') return [JSON.stringify({ findings, checked }, undefined, 2)]
  const scope = Object.entries(checked)
    .map(([area, count]) => `${count} ${area}`)
    .join(', ')
  if (findings.length === 0) return [`Nothing is missing: ${scope} checked.`]
  const rows = findings.map(({ severity, area, subject, problem }) => [severity.toUpperCase(), area, subject, problem])
  const remedies = [...new Set(findings.map(({ remedy }) => remedy))]
  const errors = findings.filter(({ severity }) => severity === 'error').length
  return [
    ...table(['SEVERITY', 'AREA', 'SUBJECT', 'PROBLEM'], rows),
    '',
    ...remedies,
    '',
    `Errors: ${errors}, warnings: ${findings.length - errors}. Checked: ${scope}.`,
  ]
}
