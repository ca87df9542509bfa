import { s } from '../schema.ts'

/** The schema of a selector by labels. `labelSelectorErrors` says what it has to satisfy. */
export const labelSelector = s
  .object({
    matchLabels: s.map(s.string()).optional(),
    matchExpressions: s
      .list(s.object({ key: s.string(), operator: s.string(), values: s.list(s.string()).atomic().optional() }))
      .atomic()
      .optional(),
  })
  .atomic()
