import { type FieldError, invalid, labelSelector } from '@capstan/kube'
import type { LabelSelector } from '../shared/label-selector.ts'

export const isEmptySelector = ({ matchLabels, matchExpressions }: LabelSelector): boolean =>
  Object.keys(matchLabels ?? {}).length === 0 && (matchExpressions ?? []).length === 0

/** The error for a selector that cannot be parsed, if there is one. */
export function selectorSyntaxErrors(path: string, selector: LabelSelector | undefined): FieldError[] {
  try {
    labelSelector(selector)
    return []
  } catch (err) {
    return [invalid(path, selector, (err as Error).message)]
  }
}
