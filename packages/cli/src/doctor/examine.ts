/**
 * Checks the preconditions of a manager in a management cluster: reads objects, sends access reviews and dry runs, and connects to webhook
 * servers. Changes nothing.
 */
import { X509Certificate } from 'node:crypto'
import {
  type Client,
  type Clock,
  CustomResourceDefinition,
  customResourceDefinition,
  type DeclaredKind,
  equal,
  hours,
  isReason,
  messageOf,
  MutatingWebhookConfiguration,
  orAbsent,
  type PolicyRule,
  resourceName,
  SelfSubjectAccessReview,
  ValidatingWebhookConfiguration,
  type WebhookClientConfig,
} from '@capstan/kube'
import { type ProviderName, providerKinds } from '@capstan/lab'
import { webhookConfiguration } from '../manifests/names.ts'
import { leaderElectionRules, managerRules } from '../manifests/roles.ts'
import { conversionFailure, probeAdmission } from '../manager/server-checks.ts'
import { unreachableReason } from '../manager/webhook-reachability.ts'

/**
 * `error`: a manager or its webhooks cannot work. `warning`: less severe, such as a missing webhook configuration, or a certificate that expires
 * soon.
 */
export type Severity = 'error' | 'warning'
export type Area = 'permissions' | 'kinds' | 'versions' | 'certificates' | 'webhooks'

export interface Finding {
  readonly severity: Severity
  readonly area: Area
  /** The permission, kind, version or webhook that the finding is about. */
  readonly subject: string
  readonly problem: string
  /** Instruction for the user. */
  readonly remedy: string
}

export interface Examination {
  readonly findings: readonly Finding[]
  /** Number of checks by area. */
  readonly checked: Readonly<Record<Area, number>>
}

export interface ExamineOptions {
  readonly client: Client
  /** Version such as `v1.36.2`, or an error text when the version cannot be read. */
  readonly kubernetesVersion: string
  readonly clock: Clock
  readonly providers: readonly ProviderName[]
  /** Namespace of the Lease for leader election. */
  readonly namespace: string
  readonly signal: AbortSignal
}

/** Oldest version of a management cluster. Upstream: docs/book/src/reference/versions.md, v1.14. */
const OldestKubernetes = { major: 1, minor: 33 }
const oldestText = `v${OldestKubernetes.major}.${OldestKubernetes.minor}`
/** Certificates that expire within this time are reported. */
const Margin = hours(24 * 14)

/** Runs all checks for the given providers. */
export async function examine(options: ExamineOptions): Promise<Examination> {
  const findings: Finding[] = []
  const checked = { permissions: 0, kinds: 0, versions: 0, certificates: 0, webhooks: 0 }
  const addFindings = (area: Area, problems: readonly Omit<Finding, 'area'>[]) => {
    checked[area]++
    for (const problem of problems) findings.push({ area, ...problem })
  }
  addFindings('versions', serverProblems(options))
  for (const permission of neededPermissions(options)) addFindings('permissions', await permissionProblems(permission, options))
  const definitions = await unlessForbidden(options.client.list(CustomResourceDefinition, { signal: options.signal }))
  for (const provider of options.providers) {
    let [isBehindService, hasAuthority] = [false, false]
    if (definitions)
      for (const kind of providerKinds[provider]) {
        const definition = definitions.items.find(({ metadata }) => metadata.name === resourceName(kind))
        addFindings('kinds', kindProblems(kind, definition, provider))
        const clientConfig = definition?.spec.conversion?.webhook?.clientConfig
        if (clientConfig) {
          isBehindService ||= clientConfig.service !== undefined
          hasAuthority ||= clientConfig.caBundle !== undefined
          addFindings('certificates', authorityProblems(`conversion of ${resourceName(kind)}`, clientConfig, options.clock.now()))
          addFindings(
            'webhooks',
            await connectionProblems(`conversion of ${resourceName(kind)}`, clientConfig, otherVersionsFail),
          )
        }
      }
    if (isBehindService) addFindings('webhooks', await conversionProblems(provider, hasAuthority, options))
    await examineWebhooks(provider, options, addFindings)
  }
  return { findings: withoutRepeats(findings), checked }
}

/** Returns `undefined` if the request is forbidden; `permissionProblems` reports the missing permission. */
const unlessForbidden = <T>(request: Promise<T>): Promise<T | undefined> =>
  request.catch((err) => {
    if (isReason(err, 'Forbidden')) return undefined
    throw err
  })

function serverProblems({ kubernetesVersion }: ExamineOptions): Omit<Finding, 'area'>[] {
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(kubernetesVersion) ?? []
  if (major === undefined)
    return [
      {
        severity: 'warning',
        subject: 'Kubernetes',
        problem: `the server does not report its version: ${kubernetesVersion}`,
        remedy: `Check that it is ${oldestText} or newer.`,
      },
    ]
  const isOld =
    Number(major) < OldestKubernetes.major || (Number(major) === OldestKubernetes.major && Number(minor) < OldestKubernetes.minor)
  if (!isOld) return []
  return [
    {
      severity: 'error',
      subject: `Kubernetes ${kubernetesVersion}`,
      problem: `is older than ${oldestText}`,
      remedy: `Upgrade the management cluster to ${oldestText} or newer.`,
    },
  ]
}

/** A permission: one verb on one resource. */
export interface Permission {
  readonly provider: ProviderName
  readonly verb: string
  readonly group: string
  /** Resource, with a subresource after a slash. */
  readonly resource: string
  /** The only object that the permission is for; absent: all objects. */
  readonly name?: string
  /** Absent: all namespaces, and cluster-scoped objects. */
  readonly namespace?: string
}

/**
 * Returns the permissions of the roles of `capstan manifests`. Leaves out the rules for a webhook Secret, and the role that permits core to
 * use the kinds of the local provider.
 */
export function neededPermissions({ providers, namespace }: Pick<ExamineOptions, 'providers' | 'namespace'>): Permission[] {
  return providers.flatMap((provider) => [
    ...managerRules(provider).flatMap((rule) => permissionsIn(rule, provider)),
    ...leaderElectionRules(provider, undefined).flatMap((rule) => permissionsIn(rule, provider, namespace)),
  ])
}

function permissionsIn(
  { apiGroups = [], resources = [], verbs, resourceNames }: PolicyRule,
  provider: ProviderName,
  namespace?: string,
) {
  const names: readonly (string | undefined)[] = resourceNames ?? [undefined]
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) =>
        names.map(
          (name): Permission => ({
            provider,
            verb,
            group,
            resource,
            ...(name === undefined ? {} : { name }),
            ...(namespace === undefined ? {} : { namespace }),
          }),
        ),
      ),
    ),
  )
}

export const permissionText = ({ verb, group, resource, name, namespace }: Permission): string =>
  `${verb} ${resource}${group === '' ? '' : `.${group}`}${name === undefined ? '' : ` ${name}`}${namespace === undefined ? '' : ` in ${namespace}`}`

async function permissionProblems(permission: Permission, { client, signal }: ExamineOptions): Promise<Omit<Finding, 'area'>[]> {
  const { provider, resource: path, ...attributes } = permission
  const [resource, subresource] = path.split('/')
  const resourceAttributes = { ...attributes, resource: resource!, ...(subresource === undefined ? {} : { subresource }) }
  const { status } = await client.create(SelfSubjectAccessReview, { metadata: {}, spec: { resourceAttributes } }, { signal })
  if (status?.allowed) return []
  return [
    {
      severity: 'error',
      subject: permissionText(permission),
      problem: `is not allowed, and the ${provider} provider needs it`,
      remedy: `Bind this user to the roles of: capstan manifests ${provider}`,
    },
  ]
}

function kindProblems(
  kind: DeclaredKind,
  definition: CustomResourceDefinition | undefined,
  provider: ProviderName,
): Omit<Finding, 'area'>[] {
  const subject = resourceName(kind)
  const remedy = `Start capstan manager without --no-install-crds, or apply: capstan manifests ${provider}`
  const problem = (text: string, severity: Severity = 'error') => [{ severity, subject, problem: text, remedy }]
  if (!definition) return problem('the CustomResourceDefinition does not exist')
  const { spec, status } = definition
  if (!status?.conditions?.some(({ type, status: value }) => type === 'Established' && value === 'True'))
    return problem('the CustomResourceDefinition is not Established')
  const served = spec.versions.find(({ name }) => name === kind.version)
  if (!served?.served) return problem(`version ${kind.version} is not served`)
  const stored = (status?.storedVersions ?? []).filter((name) => !spec.versions.some((version) => version.name === name))
  if (stored.length > 0)
    return problem(`objects are stored in ${stored.join(', ')}, which the CustomResourceDefinition no longer has`)
  const expected = customResourceDefinition(kind).spec.versions.find(({ name }) => name === kind.version)
  if (!equal(served.schema, expected?.schema))
    return problem(`the schema of ${kind.version} is that of another release`, 'warning')
  return []
}

async function examineWebhooks(
  provider: ProviderName,
  options: ExamineOptions,
  addFindings: (area: Area, problems: readonly Omit<Finding, 'area'>[]) => void,
): Promise<void> {
  const name = webhookConfiguration(provider)
  for (const kind of [MutatingWebhookConfiguration, ValidatingWebhookConfiguration] as const) {
    const request = orAbsent(
      options.client.get(kind as typeof MutatingWebhookConfiguration, { name }, { signal: options.signal }),
    )
    let configuration: Awaited<typeof request>
    try {
      configuration = await request
    } catch (err) {
      if (isReason(err, 'Forbidden')) continue
      throw err
    }
    if (!configuration) {
      addFindings('webhooks', [
        {
          severity: 'warning',
          subject: `${kind.kind} ${name}`,
          problem: 'does not exist: the API server does not call these webhooks of this provider',
          remedy: 'Start capstan manager with --webhook-port.',
        },
      ])
      continue
    }
    // All webhooks of a configuration have the same server.
    const [first] = configuration.webhooks ?? []
    if (!first) continue
    const subject = `${kind.kind} ${name}`
    addFindings('certificates', authorityProblems(subject, first.clientConfig, options.clock.now()))
    // Only the API server reaches a webhook behind a Service. One dry run makes it call the webhooks of both configurations.
    if (first.clientConfig.url !== undefined)
      addFindings('webhooks', await connectionProblems(subject, first.clientConfig, writesFail))
    else if (kind === ValidatingWebhookConfiguration) addFindings('webhooks', await serviceProblems(subject, provider, options))
  }
}

/**
 * Reports a webhook behind a Service that the API server cannot call. Returns no findings if the user lacks permission to create the
 * object of the dry run.
 */
async function serviceProblems(
  subject: string,
  provider: ProviderName,
  { client, signal }: ExamineOptions,
): Promise<Omit<Finding, 'area'>[]> {
  const { error: errorText } = await probeAdmission(client, provider, signal)
  if (!/failed calling webhook/.test(errorText)) return []
  return [
    {
      severity: 'error',
      subject,
      problem: `the API server cannot call the webhook, so ${writesFail}: ${errorText}`,
      remedy: podsRemedy(provider),
    },
  ]
}

/**
 * Reports conversion webhooks behind a Service that the API server cannot call. While no CRD of the provider has a caBundle,
 * this is only a warning, because a manager that starts adds it.
 */
async function conversionProblems(
  provider: ProviderName,
  hasAuthority: boolean,
  { client, signal }: ExamineOptions,
): Promise<Omit<Finding, 'area'>[]> {
  const errorText = await conversionFailure(client, provider, signal)
  if (errorText === undefined) return []
  return [
    {
      severity: hasAuthority ? 'error' : 'warning',
      subject: `conversion of the ${provider} provider`,
      problem: `the API server cannot call the webhook, so ${otherVersionsFail}: ${errorText}`,
      remedy: podsRemedy(provider),
    },
  ]
}

const writesFail = 'writes are rejected'
const otherVersionsFail = 'requests for other versions than the stored one fail'
const podsRemedy = (provider: ProviderName): string =>
  `Check that the Pods of the ${provider} provider are ready, and that the Service of its webhooks selects them.`

/** Reports a missing, unreadable, expired or expiring certificate authority in the `caBundle` of a webhook. */
export function authorityProblems(subject: string, { caBundle }: WebhookClientConfig, now: number): Omit<Finding, 'area'>[] {
  const remedy =
    'Start capstan manager with --webhook-port: it creates and renews the certificate. To use your own certificate, see --webhook-cert-dir.'
  const problem = (severity: Severity, text: string) => [{ severity, subject, problem: text, remedy }]
  if (caBundle === undefined || caBundle === '')
    return problem('warning', 'has no caBundle: API servers trust only the authorities of their machine')
  const certificates = Buffer.from(caBundle, 'base64')
    .toString()
    .match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)
  if (!certificates) return problem('error', 'its caBundle contains no certificate')
  let latestExpiry: number
  try {
    latestExpiry = certificates.reduce(
      (last, certificate) => Math.max(last, Date.parse(new X509Certificate(certificate).validTo)),
      0,
    )
  } catch (err) {
    return problem('error', `its caBundle cannot be read: ${messageOf(err)}`)
  }
  const until = new Date(latestExpiry).toISOString()
  if (latestExpiry <= now) return problem('error', `its authority expired at ${until}`)
  if (latestExpiry - now < Margin) return problem('warning', `its authority expires at ${until}`)
  return []
}

/** Reports a webhook server at a URL that cannot be reached; does not check a Service. `effect` is the consequence for requests. */
async function connectionProblems(
  subject: string,
  clientConfig: WebhookClientConfig,
  effect: string,
): Promise<Omit<Finding, 'area'>[]> {
  const reason = await unreachableReason(clientConfig)
  if (reason === undefined) return []
  return [
    {
      severity: 'error',
      subject,
      problem: `the webhook server ${new URL(clientConfig.url!).origin} cannot be reached, so ${effect}: ${reason}`,
      remedy:
        'Start capstan manager with --webhook-port, which takes the configuration over, or run: capstan manager --remove-webhooks',
    },
  ]
}

/** Removes repeated findings. A permission that several providers need is reported once. */
function withoutRepeats(findings: readonly Finding[]): Finding[] {
  const findingIds = new Set<string>()
  return findings.filter(({ area, subject, problem }) => {
    const id = `${area} ${subject} ${area === 'permissions' ? '' : problem}`
    if (findingIds.has(id)) return false
    findingIds.add(id)
    return true
  })
}
