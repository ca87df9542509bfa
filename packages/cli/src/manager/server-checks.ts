/** Checks whether the API server runs admission beyond schemas: `capstan up` does in-process, other servers by webhooks. */
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
  /** An object that matches the schema, but that the provider's admission rejects. */
  readonly object: Input<KubeObject>
  /** Expected rejection by admission. */
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

/** Returns the providers whose objects the server does not validate. Writes nothing: it creates objects in dry runs. */
export async function uncheckedProviders(
  client: Client,
  providers: readonly ProviderName[],
  signal: AbortSignal,
): Promise<ProviderName[]> {
  const unchecked: ProviderName[] = []
  // A webhook without a server fails the dry run as well, and the first write reports it.
  for (const provider of providers) if (!(await probe(client, provider, signal)).isChecked) unchecked.push(provider)
  return unchecked
}

/**
 * Creates an object of a provider, in a dry run, that its admission must reject. `answer` is the error text; empty when the server accepted
 * the object.
 */
export async function probe(
  client: Client,
  provider: ProviderName,
  signal: AbortSignal,
): Promise<{ readonly isChecked: boolean; readonly answer: string }> {
  const { kind, object, rejection } = probes[provider]
  const answer = await client.create(kind, object, { dryRun: true, signal }).then(
    () => '',
    (err: unknown) => {
      if (isReason(err, 'Invalid', 'Forbidden', 'NotFound', 'BadRequest', 'InternalError')) return messageOf(err)
      throw err
    },
  )
  return { isChecked: rejection.test(answer), answer }
}

/**
 * Returns the error of the API server when it cannot convert objects of a provider: creates one in an older version, in a dry run. Returns
 * undefined when it converts them, when the user may not create the object, and when the kind of the probe has one version.
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
  /** `--no-webhooks` was given. */
  readonly isAccepted: boolean
  readonly server: string
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Reports objects that the server does not validate. @throws UsageError unless the user accepts that with --no-webhooks */
export async function rejectUnchecked({ client, providers, isAccepted, server, log, signal }: CheckOptions): Promise<void> {
  const unchecked = await uncheckedProviders(client, providers, signal)
  if (unchecked.length === 0) return
  const missing = [
    'defaults that depend on other fields are set late, by the controllers',
    'objects that no schema rejects are accepted: immutable fields can change, versions can be skipped, variables can violate their class',
    'only the stored version of each kind is served',
  ]
  const problem = `${server} does not check objects of ${unchecked.join(' and ')}, and this manager serves no webhooks`
  if (!isAccepted)
    throw new UsageError(
      `${problem}: ${missing.join('; ')}.`,
      'Serve webhooks with --webhook-port 0, at an address that the API server reaches (--webhook-host, --webhook-url), or run without them: --no-webhooks.',
    )
  log.warn(`The API server ${problem.slice(server.length + 1)}`, { server, unchecked: missing.join('; ') })
}
