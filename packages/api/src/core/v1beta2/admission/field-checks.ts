/** Checks of fields that several kinds have, with upstream's texts. Upstream: core/webhooks/admission, internal/util/taints, v1.14. */
import type { FieldError } from '@capstan/kube'
import {
  invalid,
  labelKeyProblems,
  labelSelector,
  labelValueProblems,
  qualifiedNameProblems,
  required,
  tooLong,
} from '@capstan/kube'
import { isKubernetesVersion } from '../../../versions.ts'
import { NodeOutdatedRevisionTaint, NodeUninitializedTaint } from '../../well-known.ts'
import type { LabelSelector } from '../shared/label-selector.ts'
import type { MachineTaint } from '../shared/machine-taints.ts'
import type { MachineSpec } from '../shared/machine-template.ts'
import type { TemplateObjectMeta } from '../shared/object-meta.ts'
import type { RolloutStrategy } from '../shared/rollout-strategy.ts'
import { printedSelector } from './selector.ts'

/** Returns an error for a Machine that has neither a bootstrap config nor a Secret with bootstrap data. */
export const bootstrapErrors = (path: string, { bootstrap }: MachineSpec): FieldError[] =>
  bootstrap.configRef || bootstrap.dataSecretName !== undefined
    ? []
    : [
        required(
          `${path}.bootstrap`,
          `expected either ${path}.bootstrap.dataSecretName or ${path}.bootstrap.configRef to be populated`,
        ),
      ]

/** Validates a version. `problem` is the text of the error when it is not a semantic version. */
export function versionErrors(
  path: string,
  version: string | undefined,
  problem = 'must be a valid semantic version',
): FieldError[] {
  if (!version) return []
  return [
    ...(version.startsWith('v') ? [] : [invalid(path, version, 'must start with v')]),
    ...(isKubernetesVersion(version.startsWith('v') ? version : `v${version}`) ? [] : [invalid(path, version, problem)]),
  ]
}

/** Validates labels and annotations of a template, class or topology in the same way as an API server validates those of an object. */
export function metadataErrors(path: string, metadata: TemplateObjectMeta | undefined): FieldError[] {
  const errors: FieldError[] = []
  for (const [key, value] of Object.entries(metadata?.labels ?? {})) {
    for (const problem of qualifiedNameProblems(key)) errors.push(invalid(`${path}.labels`, key, problem))
    for (const problem of labelValueProblems(value)) errors.push(invalid(`${path}.labels`, value, problem))
  }
  let size = 0
  for (const [key, value] of Object.entries(metadata?.annotations ?? {})) {
    for (const problem of qualifiedNameProblems(key.toLowerCase())) errors.push(invalid(`${path}.annotations`, key, problem))
    size += byteLength(key) + byteLength(value)
  }
  if (size > maxAnnotationsSize) errors.push(tooLong(`${path}.annotations`, maxAnnotationsSize))
  return errors
}

const maxAnnotationsSize = 256 * 1024
const byteLength = (text: string): number => new TextEncoder().encode(text).length

export function taintErrors(path: string, taints: readonly MachineTaint[] | undefined): FieldError[] {
  const errors: FieldError[] = []
  for (const [index, { key }] of (taints ?? []).entries()) {
    const problem = taintKeyProblem(key)
    if (problem) errors.push(invalid(`${path}[${index}].key`, key, problem))
    for (const syntax of labelKeyProblems(key)) errors.push(invalid(`${path}[${index}].key`, key, syntax))
  }
  return errors
}

export const workerTaintErrors = (path: string, taints: readonly MachineTaint[] | undefined): FieldError[] =>
  (taints ?? []).flatMap(({ key }, index) =>
    key === 'node-role.kubernetes.io/control-plane'
      ? [invalid(`${path}[${index}].key`, key, 'taint is not allowed for worker Machines')]
      : [],
  )

/** Returns the error text for a taint key that is deprecated, or reserved for Cluster API, Kubernetes or the cloud provider. */
function taintKeyProblem(key: string): string | undefined {
  if (key === NodeUninitializedTaint.key || key === NodeOutdatedRevisionTaint.key) return 'taint key is not allowed'
  if (key.startsWith('node.kubernetes.io/') && key !== 'node.kubernetes.io/out-of-service') {
    return 'taint key must not have the prefix node.kubernetes.io/, except for node.kubernetes.io/out-of-service'
  }
  if (key.startsWith('node.cloudprovider.kubernetes.io/')) {
    return 'taint key must not have the prefix node.cloudprovider.kubernetes.io/'
  }
  return key === 'node-role.kubernetes.io/master' ? 'taint is deprecated since 1.24 and should not be used anymore' : undefined
}

export function rolloutStrategyErrors(path: string, strategy: RolloutStrategy | undefined): FieldError[] {
  const { maxSurge, maxUnavailable } = strategy?.rollingUpdate ?? {}
  return [
    ...intOrPercentErrors(`${path}.rollingUpdate.maxUnavailable`, maxUnavailable),
    ...intOrPercentErrors(`${path}.rollingUpdate.maxSurge`, maxSurge),
    ...(maxSurge === 0 && maxUnavailable === 0
      ? [invalid(`${path}.rollingUpdate`, '0', 'maxUnavailable and maxSurge cannot both be 0')]
      : []),
  ]
}

export function intOrPercentErrors(path: string, value: number | string | undefined): FieldError[] {
  if (value === undefined || typeof value === 'number' || /^[+-]?\d+%$/.test(value)) return []
  const problem = value.endsWith('%')
    ? `invalid value ${JSON.stringify(value)}: strconv.Atoi: parsing ${JSON.stringify(value.slice(0, -1))}: invalid syntax`
    : 'invalid type: string is not a percentage'
  return [invalid(path, value, `must be either an int or a percentage: invalid value for IntOrString: ${problem}`)]
}

/** Validates a selector, which must match the labels of the template. `unmatched` makes the error for a selector that does not match. */
export function selectorErrors(
  selector: LabelSelector,
  labels: { [key: string]: string } | undefined,
  unmatched: (field: string, problem: string) => FieldError,
): FieldError[] {
  try {
    const parsed = labelSelector(selector)
    if (parsed.matches(labels ?? {})) return []
    return [unmatched('spec.template.metadata.labels', `must match spec.selector ${JSON.stringify(parsed.text)}`)]
  } catch (err) {
    return [invalid('spec.selector', printedSelector(selector), (err as Error).message)]
  }
}
