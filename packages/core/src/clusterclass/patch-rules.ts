/** Validates the patches of a ClusterClass. Pure. Upstream: core/webhooks/admission/patch_validation.go, v1.14. */
import type { ClusterClassPatch, ClusterClassSpec, JSONPatch, PatchSelector } from '@capstan/api'
import { variableOf } from '@capstan/api'
import { appendAll, type FieldError, invalid, qualifiedNameProblems, required } from '@capstan/kube'
import type { TemplateRef } from '../external/get.ts'
import { goTemplate } from '../go-template/template.ts'
import { matchesName } from '../topology/patches/inline-patch.ts'

export const patchErrors = (spec: ClusterClassSpec): FieldError[] =>
  (spec.patches ?? []).flatMap((patch, index, patches) => {
    const path = `spec.patches[${index}]`
    const isDuplicate = patches.findIndex(({ name }) => name === patch.name) < index
    return [
      ...(patch.name === '' ? [required(`${path}.name`, 'patch name must be defined')] : []),
      ...(patch.name === 'inline' ? [required(`${path}.name`, '"inline" can not be used as the name of a patch')] : []),
      ...(isDuplicate
        ? [
            invalid(
              `${path}.name`,
              patch.name,
              `patch names must be unique. Patch with name ${JSON.stringify(patch.name)} is defined more than once`,
            ),
          ]
        : []),
      ...contentErrors(patch, path, spec),
    ]
  })

function contentErrors(patch: ClusterClassPatch, path: string, spec: ClusterClassSpec): FieldError[] {
  const { definitions, external, enabledIf } = patch
  return [
    ...(enabledIf === undefined ? [] : templateErrors(enabledIf, `${path}.enabledIf`, 'enabledIf')),
    ...(!definitions && !external ? [required(path, 'one of definitions or external must be defined')] : []),
    ...(definitions && external ? [invalid(path, patch, 'only one of definitions or external can be defined')] : []),
    ...(definitions ?? []).flatMap(({ selector, jsonPatches }, index) => {
      const definitionPath = `${path}.definitions[${index}]`
      return [
        ...jsonPatches.flatMap((jsonPatch, position) =>
          jsonPatchErrors(jsonPatch, `${definitionPath}.jsonPatches[${position}]`, spec),
        ),
        ...selectorErrors(selector, `${definitionPath}.selector`, spec),
      ]
    }),
    ...(external && !external.generatePatchesExtension && !external.validateTopologyExtension
      ? [invalid(`${path}.external`, external, 'one of validateTopologyExtension and generatePatchesExtension must be defined')]
      : []),
  ]
}

function templateErrors(template: string, path: string, name: string): FieldError[] {
  try {
    goTemplate(name, template)
    return []
  } catch (err) {
    return [invalid(path, template, `template can not be parsed: ${(err as Error).message}`)]
  }
}

/** Requires that a selector selects something, and that the class refers to the selected templates. */
function selectorErrors(selector: PatchSelector, path: string, spec: ClusterClassSpec): FieldError[] {
  const { infrastructureCluster, controlPlane, machineDeploymentClass, machinePoolClass } = selector.matchResources
  const matchPath = `${path}.matchResources`
  const names = [...(machineDeploymentClass?.names ?? []), ...(machinePoolClass?.names ?? [])]
  if (!infrastructureCluster && !controlPlane && names.length === 0) {
    return [invalid(path, indentedJson(withoutEmptyLists(selector)), 'no selector enabled')]
  }
  const refersTo = (...refs: (TemplateRef | undefined)[]) =>
    refs.some((ref) => ref?.apiVersion === selector.apiVersion && ref.kind === selector.kind)
  const errors: FieldError[] = []
  if (infrastructureCluster && !refersTo(spec.infrastructure.templateRef)) {
    errors.push(
      invalid(`${matchPath}.infrastructureCluster`, true, 'selector is enabled but does not match the infrastructure ref'),
    )
  }
  if (controlPlane && !refersTo(spec.controlPlane.templateRef, spec.controlPlane.machineInfrastructure?.templateRef)) {
    const problem = 'selector is enabled but matches neither the controlPlane ref nor the controlPlane machineInfrastructure ref'
    errors.push(invalid(`${matchPath}.controlPlane`, true, problem))
  }
  const workerSelectors = [
    ['machineDeploymentClass', 'MachineDeployment', machineDeploymentClass?.names, spec.workers?.machineDeployments],
    ['machinePoolClass', 'MachinePool', machinePoolClass?.names, spec.workers?.machinePools],
  ] as const
  for (const [field, kind, patterns, classes] of workerSelectors) {
    for (const [index, pattern] of (patterns ?? []).entries()) {
      const name = `${matchPath}.${field}.names[${index}]`
      const problem = patternProblem(pattern)
      if (problem) {
        errors.push(invalid(name, pattern, problem))
        break
      }
      const matched = (classes ?? []).filter((workerClass) => matchesName(pattern, workerClass.class))
      if (!matched.some((workerClass) => refersTo(workerClass.bootstrap.templateRef, workerClass.infrastructure.templateRef))) {
        const problem = `selector is enabled but matches neither the bootstrap ref nor the infrastructure ref of a ${kind} class`
        errors.push(invalid(name, pattern, problem))
      }
    }
  }
  return errors
}

/** Returns the problem with a name pattern of a selector, if there is one. As upstream, a name without asterisk is not checked. */
function patternProblem(pattern: string): string | undefined {
  if (!pattern.includes('*')) return undefined
  if ((pattern.match(/\*/g)?.length ?? 0) > 1) return 'selector can at most contain a single "*" rune'
  if (/.\*./.test(pattern)) return '"*" rune can only appear at the beginning, or ending of the selector'
  const isName = qualifiedNameProblems(pattern.replace('*', 'a')).length === 0
  return isName ? undefined : 'selector does not comply with the Kubernetes naming standards'
}

/** Formats a value for an error text. Upstream prints indented JSON, with members in the order of its Go fields. */
const indentedJson = (value: object): string => JSON.stringify(value, undefined, 2)

/** Removes empty lists of class names from a selector, as Go's JSON encoding does. */
function withoutEmptyLists(selector: PatchSelector): object {
  const { machineDeploymentClass, machinePoolClass, ...others } = selector.matchResources
  const withoutEmptyNames = (matcher: typeof machineDeploymentClass) => (matcher?.names?.length === 0 ? {} : matcher)
  const matchResources = {
    ...others,
    machineDeploymentClass: withoutEmptyNames(machineDeploymentClass),
    machinePoolClass: withoutEmptyNames(machinePoolClass),
  }
  return { ...selector, matchResources }
}

const printedPatch = ({ op, path, value, valueFrom }: JSONPatch): string => indentedJson({ op, path, value, valueFrom })

function jsonPatchErrors(patch: JSONPatch, fieldPath: string, spec: ClusterClassSpec): FieldError[] {
  const { op, value, valueFrom } = patch
  const errors: FieldError[] = pathErrors(patch, `${fieldPath}.path`)
  if (op === 'remove') return errors
  if ((value === undefined) === (valueFrom === undefined)) {
    const problem = valueFrom
      ? 'jsonPatch can not define both value and valueFrom'
      : 'jsonPatch must define one of value or valueFrom'
    errors.push(invalid(fieldPath, printedPatch(patch), problem))
  }
  if (!valueFrom) return errors
  const { template, variable } = valueFrom
  if ((template === undefined) === (variable === undefined)) {
    const problem =
      template === undefined
        ? 'valueFrom must set either template or variable'
        : 'valueFrom can not set both template and variable'
    errors.push(invalid(`${fieldPath}.valueFrom`, indentedJson({ variable, template }), problem))
  }
  if (template !== undefined) appendAll(errors, templateErrors(template, `${fieldPath}.valueFrom.template`, 'valueFrom.template'))
  if (variable !== undefined && !isKnownVariable(variable, spec)) {
    const problem = variable.startsWith('builtin.')
      ? 'not a defined builtin variable'
      : `variable with name ${variable} cannot be found`
    errors.push(invalid(`${fieldPath}.valueFrom.variable`, variable, problem))
  }
  return errors
}

/**
 * Rejects paths that do not start with `/spec`, and numeric indexes except `0` in an `add`: other patches may change which item an index
 * selects.
 */
function pathErrors(patch: JSONPatch, fieldPath: string): FieldError[] {
  const { op, path } = patch
  const errors: FieldError[] = []
  if (!path.startsWith('/spec')) errors.push(invalid(fieldPath, printedPatch(patch), 'jsonPatch path must start with "/spec"'))
  for (const index of path.split('/').filter((token) => /^[+-]?\d+$/.test(token))) {
    if (op === 'add' && Number(index) !== 0) {
      errors.push(invalid(fieldPath, path, 'arrays can only be accessed using "0" (prepend) or "-" (append)'))
    }
    if (op !== 'add') errors.push(invalid(fieldPath, path, `elements in arrays can not be accessed in a ${op} operation`))
  }
  return errors
}

function isKnownVariable(path: string, { variables = [] }: ClusterClassSpec): boolean {
  if (path.startsWith('builtin.')) return Builtins.has(path)
  const name = variableOf(path)
  return variables.some((variable) => variable.name === name)
}

const metadataPaths = ['metadata.labels', 'metadata.annotations']
const workerPaths = [
  'version',
  'class',
  'name',
  'topologyName',
  ...metadataPaths,
  'replicas',
  'bootstrap.configRef.name',
  'infrastructureRef.name',
]
/**
 * Paths of built-in variables that `valueFrom.variable` of a patch can contain. As upstream, single labels, list items and some objects, such
 * as `builtin.controlPlane.machineTemplate`, are not among them.
 */
const Builtins: ReadonlySet<string> = new Set([
  ...pathsUnder('builtin.cluster', [
    'name',
    'namespace',
    'uid',
    ...metadataPaths,
    'topology',
    'topology.version',
    'topology.class',
    'topology.classNamespace',
    'topology.classRef.name',
    'topology.classRef.namespace',
    'network',
    'network.serviceDomain',
    'network.services',
    'network.pods',
  ]),
  ...pathsUnder('builtin.controlPlane', [
    'version',
    'name',
    ...metadataPaths,
    'replicas',
    'machineTemplate.infrastructureRef.name',
  ]),
  ...pathsUnder('builtin.machineDeployment', workerPaths),
  ...pathsUnder('builtin.machinePool', workerPaths),
])

function pathsUnder(root: string, paths: readonly string[]): string[] {
  return [root, ...paths.map((path) => `${root}.${path}`)]
}
