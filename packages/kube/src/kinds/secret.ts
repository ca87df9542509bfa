import { appendAll } from '../lists.ts'
import { addInvalid, type FieldError, invalid, required, tooLong } from '../errors.ts'
import { scanJSON } from '../json-scan.ts'
import { defineKind, type ObjectOf } from '../kind.ts'
import { s } from '../schema.ts'
import { decodedLength, immutableErrors, keyProblems, MaxDataSize } from './config-map.ts'

export const Secret = defineKind({
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  scope: 'Namespaced',
  doc: 'Confidential data for other objects and programs.',
  fields: {
    data: s
      .map(s.string({ format: 'byte' }))
      .optional()
      .doc('Values by key, base64-encoded.'),
    stringData: s.map(s.string()).optional().doc('Text values by key. Write-only: the server merges them into data.'),
    type: s.string().optional().doc('Type of the data, which determines the required keys; `Opaque` requires none.'),
    immutable: s.boolean().optional().doc('If true, the data is immutable; only metadata can change.'),
  },
  default(secret) {
    if (secret.stringData) {
      secret.data = { ...secret.data }
      for (const [key, text] of Object.entries(secret.stringData)) secret.data[key] = base64(text)
      delete secret.stringData
    }
    secret.type ||= 'Opaque'
  },
  validate(secret, { oldObject }) {
    const errors: FieldError[] = []
    let size = 0
    for (const [key, value] of Object.entries(secret.data ?? {})) {
      addInvalid(errors, `data[${key}]`, key, keyProblems(key))
      size += decodedLength(value)
    }
    if (size > MaxDataSize) errors.push(tooLong('data', MaxDataSize))
    const { type = '' } = secret
    for (const key of Object.hasOwn(requiredKeys, type) ? requiredKeys[type]! : []) {
      if (secret.data?.[key] === undefined) errors.push(required(`data[${key}]`))
    }
    appendAll(errors, configErrors(secret.type ?? '', secret.data ?? {}))
    if (secret.type === 'kubernetes.io/service-account-token' && !secret.metadata.annotations?.[ServiceAccountNameAnnotation]) {
      errors.push(required(`metadata.annotations[${ServiceAccountNameAnnotation}]`))
    }
    if (
      secret.type === 'kubernetes.io/basic-auth' &&
      !('username' in (secret.data ?? {})) &&
      !('password' in (secret.data ?? {}))
    ) {
      errors.push(required('data[username]'), required('data[password]'))
    }
    if (oldObject) {
      if (secret.type !== oldObject.type) errors.push(invalid('type', secret.type, 'field is immutable'))
      if (oldObject.immutable) appendAll(errors, immutableErrors(secret, oldObject, ['data']))
    }
    return errors
  },
})
export type Secret = ObjectOf<typeof Secret>

const ServiceAccountNameAnnotation = 'kubernetes.io/service-account.name'

/** Keys that a Secret of the type must have. Upstream: core validation, ValidateSecret. */
const requiredKeys: { readonly [type: string]: readonly string[] } = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
}

/** Validates that registry credentials are JSON. Errors contain at most one character of the credentials. */
function configErrors(type: string, data: { readonly [key: string]: string }): FieldError[] {
  const key = { 'kubernetes.io/dockercfg': '.dockercfg', 'kubernetes.io/dockerconfigjson': '.dockerconfigjson' }[type]
  const value = key === undefined ? undefined : data[key]
  if (value === undefined) return []
  const bytes = Uint8Array.from(atob(value), (character) => character.codePointAt(0)!)
  const problem = scanJSON(new TextDecoder().decode(bytes)).error
  return problem === undefined ? [] : [invalid(`data[${key!}]`, '<secret contents redacted>', problem)]
}

/** Encodes the UTF-8 bytes of a text as base64, without Node's Buffer, because this code runs in browsers, too. */
function base64(text: string): string {
  let bytes = ''
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte)
  return btoa(bytes)
}
