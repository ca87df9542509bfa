/** Patterns and limits of fields, as in upstream's CRDs. */

/** Requires an object to have at least one member. */
export const nonEmpty = { minProperties: 1 } as const
/** Limits of the length of a short text that may contain any characters, such as a version. */
export const shortText = { minLength: 1, maxLength: 256 } as const

export const dnsSubdomain = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'
export const dnsLabel = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'
export const kindName = '^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$'
export const conditionTypeName =
  '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$'
export const qualifiedName =
  '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$'
export const labelValue = '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'
export const groupVersion = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\\/[a-z]([-a-z0-9]*[a-z0-9])?$'

/** Limits of the length, and the pattern, of the name of an object. */
export const objectName = { minLength: 1, maxLength: 253, pattern: dnsSubdomain } as const
