import type { ReconcileContext } from '@capstan/controller'
import { type ObjectKey, orAbsent, Secret } from '@capstan/kube'

/** One value of a Secret as text; absent when the Secret or the key is. */
export function secretText(secret: Secret | undefined, key: string): string | undefined {
  const value = secret?.data?.[key]
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8')
}

/** `data` of a Secret with these texts. */
export const secretData = (texts: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text, 'utf8').toString('base64')]))

/** A Secret from the cache, or from the server when the cache does not know it: before something is made in its place. */
export const findSecret = async (key: ObjectKey, io: ReconcileContext): Promise<Secret | undefined> =>
  io.cache.peek(Secret, key) ?? (await orAbsent(io.client.get(Secret, key)))
