/** Inline patches of a ClusterClass: matches templates, evaluates `enabledIf` and computes the operations. Pure. */
import type { ClusterClassPatch, JSONPatch, PatchSelector } from '@capstan/api'
import { variableValue } from '@capstan/api'
import {
  type Json,
  type JsonObject,
  type JsonPatchOperation,
  messageOf,
  type UnknownObject,
  withErrorContext,
  yamlOptions,
} from '@capstan/kube'
import { parse as parseYaml } from 'yaml'
import { allOrError } from '../../aggregate-errors.ts'
import { goTemplate } from '../../go-template/template.ts'
import { variableProblem } from './patch-variables.ts'

/** Role of a template in a ClusterClass, which a selector compares with its `matchResources`. */
export type TemplateRole =
  | { readonly kind: 'infrastructureCluster' }
  | { readonly kind: 'controlPlane' }
  | { readonly kind: 'machineDeployment' | 'machinePool'; readonly class: string }

/**
 * Returns the operations of a patch for one template; none when the patch does not match the template, or is not enabled.
 * @throws Error when `enabledIf` cannot be evaluated; AggregateError with an error for each definition that fails, as upstream
 */
export function patchOperations(
  patch: ClusterClassPatch,
  template: UnknownObject,
  role: TemplateRole,
  variables: JsonObject,
): JsonPatchOperation[] {
  const definitions = (patch.definitions ?? []).filter(({ selector }) => selects(selector, template, role))
  if (definitions.length === 0) return []
  const kind = JSON.stringify(template.kind)
  const enabled = withErrorContext(`failed to calculate if patch is enabled for ${kind}`, () =>
    isEnabled(patch.enabledIf, variables),
  )
  if (!enabled) return []
  return allOrError(definitions, ({ jsonPatches }) =>
    withErrorContext(`failed to generate JSON patches for ${kind}`, () =>
      jsonPatches.map((jsonPatch) => operation(jsonPatch, variables)),
    ),
  ).flat()
}

/** Whether a selector matches a template in this role. Class names in the selector may begin or end with `*`. */
export function selects(
  { apiVersion, kind, matchResources }: PatchSelector,
  template: UnknownObject,
  role: TemplateRole,
): boolean {
  if (apiVersion !== template.apiVersion || kind !== template.kind) return false
  switch (role.kind) {
    case 'infrastructureCluster':
      return matchResources.infrastructureCluster === true
    case 'controlPlane':
      return matchResources.controlPlane === true
    case 'machineDeployment':
      return (matchResources.machineDeploymentClass?.names ?? []).some((pattern) => matchesName(pattern, role.class))
    case 'machinePool':
      return (matchResources.machinePoolClass?.names ?? []).some((pattern) => matchesName(pattern, role.class))
  }
}

/** Whether the name of a worker class matches a pattern, which may begin or end with `*`. */
export function matchesName(pattern: string, name: string): boolean {
  if (pattern === '*') return true
  if (pattern.startsWith('*')) return name.endsWith(pattern.slice(1))
  if (pattern.endsWith('*')) return name.startsWith(pattern.slice(0, -1))
  return pattern === name
}

/** Whether a patch is enabled: it has no `enabledIf`, or the text that `enabledIf` renders is parsed as the boolean true. */
function isEnabled(enabledIf: string | undefined, variables: JsonObject): boolean {
  if (enabledIf === undefined) return true
  return withErrorContext('failed to calculate value for enabledIf', () => renderedValue(enabledIf, variables)) === true
}

function operation({ op, path, value, valueFrom }: JSONPatch, variables: JsonObject): JsonPatchOperation {
  if (op === 'remove') return { op, path }
  if (valueFrom?.variable !== undefined) return { op, path, value: valueOfVariable(valueFrom.variable, variables) }
  const { template } = valueFrom ?? {}
  if (template === undefined) return { op, path, value: (value ?? null) as Json }
  return {
    op,
    path,
    value: withErrorContext('failed to calculate value for template', () => renderedValue(template, variables)),
  }
}

function valueOfVariable(variablePath: string, variables: JsonObject): Json {
  const problem = variableProblem(variables, variablePath)
  if (problem !== undefined) throw new Error(`failed to calculate value: ${problem}`)
  return variableValue(variables, variablePath)
}

/** Renders a template and parses the text as YAML 1.1, where `yes` and `on` are true, as upstream does. */
function renderedValue(template: string, variables: JsonObject): Json {
  const text = withErrorContext(`failed to render template: ${JSON.stringify(template)}`, () =>
    goTemplate('tpl', template).render(variables),
  )
  try {
    return (parseYaml(text, yamlOptions) ?? null) as Json
  } catch (cause) {
    // Takes only the first line of the message: the other lines show the position in the text.
    const [problem] = messageOf(cause).split(':\n')
    throw new Error(
      `failed to unmarshal rendered template: ${JSON.stringify(text)}: error converting YAML to JSON: yaml: ${problem}`,
      { cause },
    )
  }
}
