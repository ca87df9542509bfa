/**
 * Reads and validates settings of ExtensionConfigs that upstream's API does not have. They are annotations, because upstream's
 * CustomResourceDefinition would prune additional fields.
 */
import type { FieldError, KubeObject, Selector } from '@capstan/kube'
import { everything, invalid, isRecord, parseLabelSelector } from '@capstan/kube'

/**
 * Label selector in kubectl's form, such as `team=a,tier in (x, y)`. The extension is not called for Clusters that the selector does not
 * match. Calls for other objects, such as ClusterClasses, ignore the selector.
 */
export const ObjectSelectorAnnotation = 'runtime.capstan.dev/object-selector'

/** JSON with overrides by handler name, such as `{"gate": {"timeoutSeconds": 5, "failurePolicy": "Ignore"}}`. */
export const HandlerOverridesAnnotation = 'runtime.capstan.dev/handler-overrides'

/** Time of the last successful discovery, in RFC 3339. Core writes this annotation. */
export const LastDiscoveredAnnotation = 'runtime.capstan.dev/last-discovered'

/** Values that replace the values of the extension's discovery response for one handler. */
export interface HandlerOverride {
  /** A whole number from 1 to 30. */
  readonly timeoutSeconds?: number
  readonly failurePolicy?: 'Ignore' | 'Fail'
}

export interface ExtensionOptions {
  readonly objectSelector: Selector
  readonly overrides: { readonly [handler: string]: HandlerOverride }
}

/** Parses the annotations. Ignores values that admission would reject, because they may have been stored before admission was installed. */
export function extensionOptions({ metadata: { annotations = {} } }: Pick<KubeObject, 'metadata'>): ExtensionOptions {
  const selector = annotations[ObjectSelectorAnnotation]
  const overrides = annotations[HandlerOverridesAnnotation]
  return {
    objectSelector: selector !== undefined && selectorProblem(selector) === undefined ? parseLabelSelector(selector) : everything,
    overrides: overrides !== undefined && overrideProblem(overrides) === undefined ? JSON.parse(overrides) : {},
  }
}

export function extensionOptionErrors({ annotations = {} }: KubeObject['metadata']): FieldError[] {
  const errors: FieldError[] = []
  const check = (name: string, problemOf: (text: string) => string | undefined) => {
    const text = annotations[name]
    const problem = text === undefined ? undefined : problemOf(text)
    if (problem !== undefined) errors.push(invalid(`metadata.annotations[${name}]`, text, problem))
  }
  check(ObjectSelectorAnnotation, selectorProblem)
  check(HandlerOverridesAnnotation, overrideProblem)
  return errors
}

function selectorProblem(text: string): string | undefined {
  try {
    parseLabelSelector(text)
    return undefined
  } catch (err) {
    return (err as Error).message
  }
}

function overrideProblem(text: string): string | undefined {
  const example = '{"<handler>": {"timeoutSeconds": 5, "failurePolicy": "Ignore"}}'
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (err) {
    return `must be JSON such as ${example}: ${(err as Error).message}`
  }
  if (!isRecord(value)) return `must be an object such as ${example}`
  for (const [handler, override] of Object.entries(value)) {
    if (!isRecord(override)) return `${handler} must be an object: expected ${example}`
    const { timeoutSeconds, failurePolicy, ...unknown } = override
    const [unknownName] = Object.keys(unknown)
    if (unknownName !== undefined) return `${handler}.${unknownName} is not known: expected timeoutSeconds or failurePolicy`
    if (
      timeoutSeconds !== undefined &&
      !(Number.isInteger(timeoutSeconds) && Number(timeoutSeconds) >= 1 && Number(timeoutSeconds) <= 30)
    ) {
      return `${handler}.timeoutSeconds must be a whole number from 1 to 30`
    }
    if (failurePolicy !== undefined && failurePolicy !== 'Ignore' && failurePolicy !== 'Fail') {
      return `${handler}.failurePolicy must be Ignore or Fail`
    }
  }
  return undefined
}
