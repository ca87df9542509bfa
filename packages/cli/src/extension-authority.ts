/** Stores the certificate authority of an extension in a Secret, from which core copies it. */
import { InjectCAFromSecretAnnotation } from '@capstan/api'
import { type Client, type ObjectKey, Secret } from '@capstan/kube'

/** Applies the Secret. @param bundle authorities to trust, PEM */
export async function publishAuthority(client: Client, secret: ObjectKey, bundle: string, fieldManager: string): Promise<void> {
  const data = { 'ca.crt': Buffer.from(bundle).toString('base64') }
  await client.apply(Secret, { metadata: secret, data }, { fieldManager, force: true })
}

/**
 * Returns the ExtensionConfig annotation that makes core copy the authority from the Secret to `caBundle`, also after each renewal.
 */
export const authorityFrom = ({ namespace, name }: ObjectKey): { readonly [InjectCAFromSecretAnnotation]: string } => ({
  [InjectCAFromSecretAnnotation]: `${namespace}/${name}`,
})
