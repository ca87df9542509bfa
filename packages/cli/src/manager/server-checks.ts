/**
 * Checks whether the API server runs the providers' admission and conversion. The API servers of `capstan up` and `capstan dev` run both in
 * process; other API servers call webhooks.
 */
import { ExtensionConfig } from '@capstan/api'
import {
  type Client,
  type DeclaredKind,
  type Input,
  isReason,
  type KubeObject,
  type Logger,
  messageOf,
  StatusError,
} from '@capstan/kube'
import type { ProviderName } from '@capstan/lab'
import { LocalControlPlane } from '@capstan/local'
import { UsageError } from '../io.ts'

interface Probe {
  readonly kind: DeclaredKind
  /** Object that is valid for the schema, but invalid for the provider's admission. */
  readonly object: Input<KubeObject>
  /** Matches the error of the provider's admission. */
  readonly rejection: RegExp
}

const probes: Readonly<Record<ProviderName, Probe>> = {
  core: {
    kind: ExtensionConfig as unknown as DeclaredKind,
    object: { metadata: { name: 'capstan-probe' }, spec: { clientConfig: { url: 'http://probe.invalid' } } } as Input<KubeObject>,
    rejection: /'https' is the only allowed URL scheme/,
  },
  local: {
    kind: LocalControlPlane as unknown as DeclaredKind,
    object: {
      metadata: { name: 'capstan-probe', namespace: 'default' },
      spec: {
        replicas: 2,
        version: 'v1.36.0',
        machineTemplate: {
          spec: { infrastructureRef: { apiGroup: 'infrastructure.capstan.dev', kind: 'LocalMachineTemplate', name: 'probe' } },
        },
      },
    } as Input<KubeObject>,
    rejection: /cannot be an even number/,
  },
}

/** Returns the providers whose objects the server does not validate. Writes nothing, because it uses dry runs. */
export async function uncheckedProviders(
  client: Client,
  providers: readonly ProviderName[],
  signal: AbortSignal,
): Promise<ProviderName[]> {
  const unchecked: ProviderName[] = []
  // If the server of a webhook is unreachable, the dry run fails with another error, and the provider counts as unchecked.
  for (const provider of providers) if (!(await probeAdmission(client, provider, signal)).isChecked) unchecked.push(provider)
  return unchecked
}

/**
 * Creates, in a dry run, an object that the provider's admission must reject. `isChecked`: whether the admission rejected it. `error`:
 * error text; empty if the server accepted the object.
 */
export async function probeAdmission(
  client: Client,
  provider: ProviderName,
  signal: AbortSignal,
): Promise<{ readonly isChecked: boolean; readonly error: string }> {
  const { kind, object, rejection } = probes[provider]
  const error = await client.create(kind, object, { dryRun: true, signal }).then(
    () => '',
    (err: unknown) => {
      if (isReason(err, 'Invalid', 'Forbidden', 'NotFound', 'BadRequest', 'InternalError')) return messageOf(err)
      throw err
    },
  )
  return { isChecked: rejection.test(error), error }
}

/**
 * Creates an object of a provider in an older version, in a dry run, and returns the error if the API server cannot convert it.
 * Returns undefined if the conversion succeeds, if the API server rejects the object for another reason, such as a missing permission,
 * or if the kind has only one version.
 */
export async function conversionFailure(
  client: Client,
  provider: ProviderName,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { kind, object } = probes[provider]
  const [older] = kind.versions
  if (!older) return undefined
  try {
    await client.create(older.kind, object, { dryRun: true, signal })
    return undefined
  } catch (err) {
    if (!(err instanceof StatusError)) throw err
    return /conversion webhook for .* failed/.test(err.message) ? err.message : undefined
  }
}

export interface CheckOptions {
  readonly client: Client
  readonly providers: readonly ProviderName[]
  /** Whether `--no-webhooks` was given. */
  readonly noWebhooks: boolean
  /** Name of the server in messages. */
  readonly server: string
  readonly log: Logger
  readonly signal: AbortSignal
}

/**
 * Rejects a server that does not validate the providers' objects. With --no-webhooks, logs a warning instead.
 *
 * @throws UsageError
 */
export async function rejectUnchecked({ client, providers, noWebhooks, server, log, signal }: CheckOptions): Promise<void> {
  const unchecked = await uncheckedProviders(client, providers, signal)
  if (unchecked.length === 0) return
  const consequences = [
    'defaults that depend on other fields are set late, by the controllers',
    'objects that only admission rejects are accepted: immutable fields can change, versions can be skipped, variables can violate their ClusterClass',
    'only the stored version of each kind is served',
  ]
  const problem = `does not check objects of ${unchecked.join(' and ')}, and this manager serves no webhooks`
  if (!noWebhooks)
    throw new UsageError(
      `${server} ${problem}: ${consequences.join('; ')}.`,
      'Serve webhooks with --webhook-port 0, at an address that the API server reaches (--webhook-host, --webhook-url), or run without them: --no-webhooks.',
    )
  log.warn(`The API server ${problem}`, { server, consequences: consequences.join('; ') })
}
