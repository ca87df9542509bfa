/** The kinds of `node.k8s.io/v1`. Upstream: pkg/apis/node and pkg/registry/node, v1.36. */
import { dnsLabelProblems, duplicate, type FieldError, invalid, parseQuantity, quantityText, required } from '@capstan/kube'
import type { BuiltinKind, KindTable } from './builtin-kind.ts'
import { labels, problems } from './checks.ts'
import { atLeastZero } from './counts.ts'
import { immutable } from './same.ts'
import { ageColumn, column, nameColumn, text } from './columns.ts'
import type { Overhead, RuntimeClass, Scheduling } from './schemas/types.ts'

const runtimeclasses: BuiltinKind<RuntimeClass> = {
  createsOnUpdate: true,
  columns: [nameColumn, column('Handler', (o) => text(o, 'handler')), ageColumn],
  validate({ handler, overhead, scheduling }, old) {
    if (old) return immutable('handler', handler, old.handler)
    return [
      ...(handler === '' ? [required('handler')] : problems('handler', handler, dnsLabelProblems(handler))),
      ...overheadErrors(overhead),
      ...schedulingErrors(scheduling),
    ]
  },
}

function overheadErrors({ podFixed = {} }: Overhead = {}): FieldError[] {
  return Object.entries(podFixed).flatMap(([name, value]) => {
    const quantity = parseQuantity(String(value))
    // Upstream validates podFixed as the limits of a container, so its error has this path.
    return quantity.nano < 0n ? [invalid(`overhead.limits[${name}]`, quantityText(quantity), atLeastZero)] : []
  })
}

function schedulingErrors({ nodeSelector, tolerations = [] }: Scheduling = {}): FieldError[] {
  const seenTolerations = new Set<string>()
  return [
    ...labels('scheduling.nodeSelector', nodeSelector),
    ...tolerations.flatMap(({ key = '', operator = '', value = '', effect = '', tolerationSeconds = null }, index) => {
      // Upstream's error text has the names of Go's fields. Tolerations that differ only in tolerationSeconds are duplicates.
      const comparedFields = { Key: key, Operator: operator, Value: value, Effect: effect }
      const comparedText = JSON.stringify(comparedFields)
      if (seenTolerations.has(comparedText)) {
        return [duplicate(`scheduling.tolerations[${index}]`, { ...comparedFields, TolerationSeconds: tolerationSeconds })]
      }
      seenTolerations.add(comparedText)
      return []
    }),
  ]
}

export const node: KindTable = { runtimeclasses }
