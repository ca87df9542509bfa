import { type FieldError, invalid, labelSelector } from '@capstan/kube'
import type { LabelSelector } from '../shared/label-selector.ts'

export const isEmptySelector = ({ matchLabels, matchExpressions }: LabelSelector = {}): boolean =>
  Object.keys(matchLabels ?? {}).length === 0 && (matchExpressions ?? []).length === 0

/** Returns labels in the form that upstream's errors contain: sorted by key. */
export const printedLabels = (labels: { readonly [key: string]: string }): { [key: string]: string } =>
  Object.fromEntries(
    Object.keys(labels)
      .sort()
      .map((key) => [key, labels[key]!]),
  )

/** Returns a selector in the form that upstream's errors contain: labels sorted by key, without empty members. */
export function printedSelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): LabelSelector {
  return {
    ...(Object.keys(matchLabels).length > 0 ? { matchLabels: printedLabels(matchLabels) } : {}),
    ...(matchExpressions.length > 0
      ? {
          matchExpressions: matchExpressions.map(({ key, operator, values = [] }) => ({
            key,
            operator,
            ...(values.length > 0 ? { values } : {}),
          })),
        }
      : {}),
  }
}

/** Returns an error for a selector that cannot be parsed. */
export function selectorSyntaxErrors(path: string, selector: LabelSelector | undefined): FieldError[] {
  try {
    labelSelector(selector)
    return []
  } catch (err) {
    return [invalid(path, printedSelector(selector), (err as Error).message)]
  }
}
