import { s } from '../schema.ts'

/** Schema of a label selector. `labelSelectorErrors` validates it further. */
export const labelSelector = s
  .object({
    matchLabels: s.map(s.string()).optional(),
    matchExpressions: s
      .list(s.object({ key: s.string(), operator: s.string(), values: s.list(s.string()).atomic().optional() }))
      .atomic()
      .optional(),
  })
  .atomic()
