/**
 * Copies the CA bundle of an extension from a Secret to its ExtensionConfig, so that core trusts renewed certificates. Upstream:
 * reconcileCABundle, v1.14.
 */
import { ExtensionConfig, InjectCAFromSecretAnnotation } from '@capstan/api'
import { type Client, keyOf, messageOf, Secret } from '@capstan/kube'

/** Key of the CA bundle in the Secret's data. */
const CAKey = 'ca.crt'

/** `namespace/name` of the Secret, as the annotation has it; `undefined` without the annotation. */
export const caSecretOf = ({ metadata }: ExtensionConfig): string | undefined =>
  metadata.annotations?.[InjectCAFromSecretAnnotation]

/**
 * Returns the ExtensionConfig with the caBundle of the Secret that its annotation names; unchanged without the annotation. Writes a changed
 * caBundle to the API server, before the status is written, so that the status reports the new generation.
 * @throws Error with upstream's text when the Secret cannot be used; StatusError when the write fails
 */
export async function injectCABundle(client: Client, config: ExtensionConfig, signal: AbortSignal): Promise<ExtensionConfig> {
  const secret = caSecretOf(config)
  if (secret === undefined) return config
  const caBundle = await caBundleOf(client, secret, signal).catch((err) => {
    throw new Error(`failed to reconcile caBundle: ${messageOf(err)}`, { cause: err })
  })
  if (caBundle === config.spec.clientConfig.caBundle) return config
  const body = { spec: { clientConfig: { caBundle } } }
  return client.patch(ExtensionConfig, keyOf(config), { type: 'merge', body }, { signal })
}

async function caBundleOf(client: Client, secret: string, signal: AbortSignal): Promise<string> {
  const quoted = JSON.stringify(secret)
  const slash = secret.indexOf('/')
  const [namespace, name] = [secret.slice(0, Math.max(slash, 0)), secret.slice(slash + 1)]
  if (namespace === '' || name === '') throw new Error(`secret name ${quoted} must be in the form <namespace>/<name>`)
  const { data } = await client.get(Secret, { namespace, name }, { signal }).catch((err) => {
    throw new Error(`failed to get secret ${quoted}: ${messageOf(err)}`, { cause: err })
  })
  const caBundle = data?.[CAKey]
  if (!caBundle) throw new Error(`secret ${secret} does not contain a ${JSON.stringify(CAKey)} entry`)
  return caBundle
}
