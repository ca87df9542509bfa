import type { ReconcileContext } from '@capstan/controller'
import { type Input, isReason, type ObjectKey, orAbsent, Secret } from '@capstan/kube'

/** Returns one value of a Secret as text; `undefined` when the Secret or the key does not exist. */
export function secretText(secret: Secret | undefined, key: string): string | undefined {
  const value = secret?.data?.[key]
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8')
}

/** Returns the `data` of a Secret with these texts. */
export const secretData = (texts: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text, 'utf8').toString('base64')]))

/**
 * Reads a Secret from the cache. If the cache does not have it, reads it from the server, because the cache may be stale.
 */
export const findSecret = async (key: ObjectKey, io: ReconcileContext): Promise<Secret | undefined> =>
  io.cache.peek(Secret, key) ?? (await orAbsent(io.client.get(Secret, key)))

/** Creates a Secret. If a Secret of this name exists already, returns it as `existing`, so that callers need no read before the create. */
export async function createSecret(
  secret: Input<Secret>,
  { client }: ReconcileContext,
): Promise<{ existing: Secret | undefined }> {
  try {
    await client.create(Secret, secret)
    return { existing: undefined }
  } catch (err) {
    if (!isReason(err, 'AlreadyExists')) throw err
    const { name, namespace } = secret.metadata as ObjectKey
    return { existing: await client.get(Secret, { name, namespace: namespace! }) }
  }
}
