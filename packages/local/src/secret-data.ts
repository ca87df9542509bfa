import type { Secret } from '@capstan/kube'

/** One value of a Secret as text; absent when the Secret or the key is. */
export function secretText(secret: Secret | undefined, key: string): string | undefined {
  const value = secret?.data?.[key]
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8')
}

/** `data` of a Secret with these texts. */
export const secretData = (texts: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text, 'utf8').toString('base64')]))
