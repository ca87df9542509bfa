import { type FieldError, invalid, labelSelector } from '@capstan/kube'
import type { LabelSelector } from '../shared/label-selector.ts'

export const isEmptySelector = ({ matchLabels, matchExpressions }: LabelSelector = {}): boolean =>
  Object.keys(matchLabels ?? {}).length === 0 && (matchExpressions ?? []).length === 0

/** A selector as upstream prints it in errors: labels sorted by key, nothing that is empty. */
export function printedSelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): LabelSelector {
  const labels = Object.keys(matchLabels).sort()
  return {
    ...(labels.length > 0 ? { matchLabels: Object.fromEntries(labels.map((key) => [key, matchLabels[key]!])) } : {}),
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

/** The error for a selector that cannot be parsed, if there is one. */
export function selectorSyntaxErrors(path: string, selector: LabelSelector | undefined): FieldError[] {
  try {
    labelSelector(selector)
    return []
  } catch (err) {
    return [invalid(path, printedSelector(selector), (err as Error).message)]
  }
}
