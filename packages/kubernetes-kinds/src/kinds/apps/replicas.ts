/** Scale and validation that several kinds of `apps/v1` share. */
import {
  type FieldError,
  forbidden,
  invalid,
  type LabelSelector,
  notSupported,
  required,
  type ScaleSubresource,
} from '@capstan/kube'
import { isEmptySelector, labelSelector } from '../checks.ts'
import { usableSelector } from '../pod-names.ts'
import { immutable, inOrder, printedSelector } from '../same.ts'
import type { PodTemplateSpec } from '../schemas/types.ts'

export const replicasScale: ScaleSubresource = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.spec.selector',
}

/** Returns the errors of a required selector; the error text about an empty selector contains `kind`. */
export function requiredSelectorErrors(selector: LabelSelector | undefined, kind: string): FieldError[] {
  if (!selector) return [required('spec.selector')]
  return [...labelSelector('spec.selector', selector), ...emptySelectorErrors(selector, kind)]
}

export const emptySelectorErrors = (selector: LabelSelector, kind: string): FieldError[] =>
  isEmptySelector(selector) ? [invalid('spec.selector', selector, `empty selector is invalid for ${kind}`)] : []

/** Returns an error when the selector does not match pods of the template. */
export function templateLabelErrors(selector: LabelSelector | undefined, template: PodTemplateSpec): FieldError[] {
  const selects = usableSelector(selector)
  const { labels } = template.metadata
  if (!selects || selects.matches(labels)) return []
  const text = '`selector` does not match template `labels`'
  return [invalid('spec.template.metadata.labels', inOrder(labels), text)]
}

/** Validates templates of pods that run until they are deleted. */
export function longRunningErrors({ spec }: PodTemplateSpec, kind: string): FieldError[] {
  const { restartPolicy, activeDeadlineSeconds } = spec
  return [
    ...(restartPolicy === 'Always' ? [] : [notSupported('spec.template.spec.restartPolicy', restartPolicy ?? '', ['Always'])]),
    ...(activeDeadlineSeconds === undefined
      ? []
      : [forbidden('spec.template.spec.activeDeadlineSeconds', `activeDeadlineSeconds in ${kind} is not Supported`)]),
  ]
}

export const immutableSelector = (selector: LabelSelector | undefined, old: LabelSelector | undefined): FieldError[] =>
  immutable('spec.selector', printedSelector(selector), old)
