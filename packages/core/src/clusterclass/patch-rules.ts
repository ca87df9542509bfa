/** Validates the patches of a class. Pure. Upstream: core/webhooks/admission/patch_validation.go, v1.14. */
import type { ClusterClassPatch, ClusterClassSpec, JSONPatch, PatchSelector } from '@capstan/api'
import { variableOf } from '@capstan/api'
import { appendAll, type FieldError, invalid, required } from '@capstan/kube'
import type { TemplateRef } from '../external/get.ts'
import { goTemplate } from '../go-template/template.ts'
import { matchesName } from '../topology/inline-patch.ts'

export const patchErrors = (spec: ClusterClassSpec): FieldError[] =>
  (spec.patches ?? []).flatMap((patch, index, all) => {
    const path = `spec.patches[${index}]`
    const twice = all.findIndex(({ name }) => name === patch.name) < index
    return [
      ...(patch.name === '' ? [required(`${path}.name`, 'patch name must be defined')] : []),
      ...(patch.name === 'inline' ? [invalid(`${path}.name`, patch.name, 'inline can not be used as patch name')] : []),
      ...(twice
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
  if (!definitions && !external) return [required(path, 'one of definitions or external must be defined')]
  if (definitions && external) return [invalid(path, patch.name, 'only one of definitions or external can be defined')]
  return [
    ...(external && !external.generatePatchesExtension && !external.validateTopologyExtension
      ? [invalid(`${path}.external`, external, 'one of validateTopologyExtension and generatePatchesExtension must be defined')]
      : []),
    ...(enabledIf === undefined ? [] : templateErrors(enabledIf, `${path}.enabledIf`)),
    ...(definitions ?? []).flatMap(({ selector, jsonPatches }, index) => {
      const at = `${path}.definitions[${index}]`
      return [
        ...selectorErrors(selector, `${at}.selector`, spec),
        ...jsonPatches.flatMap((one, position) => jsonPatchErrors(one, `${at}.jsonPatches[${position}]`, spec)),
      ]
    }),
  ]
}

function templateErrors(template: string, path: string): FieldError[] {
  try {
    goTemplate('validation', template)
    return []
  } catch (err) {
    return [invalid(path, template, `template can not be parsed: ${(err as Error).message}`)]
  }
}

/** A selector must select something, and each selected part must exist in the class. */
function selectorErrors(selector: PatchSelector, path: string, spec: ClusterClassSpec): FieldError[] {
  const { infrastructureCluster, controlPlane, machineDeploymentClass, machinePoolClass } = selector.matchResources
  const at = `${path}.matchResources`
  const names = [...(machineDeploymentClass?.names ?? []), ...(machinePoolClass?.names ?? [])]
  if (!infrastructureCluster && !controlPlane && names.length === 0) {
    return [invalid(at, selector.matchResources, 'no selector enabled')]
  }
  const means = (...refs: (TemplateRef | undefined)[]) =>
    refs.some((ref) => ref?.apiVersion === selector.apiVersion && ref.kind === selector.kind)
  const errors: FieldError[] = []
  if (infrastructureCluster && !means(spec.infrastructure.templateRef)) {
    errors.push(invalid(`${at}.infrastructureCluster`, true, 'selector is enabled but does not match the infrastructure ref'))
  }
  if (controlPlane && !means(spec.controlPlane.templateRef, spec.controlPlane.machineInfrastructure?.templateRef)) {
    const problem = 'selector is enabled but matches neither the controlPlane ref nor the controlPlane machineInfrastructure ref'
    errors.push(invalid(`${at}.controlPlane`, true, problem))
  }
  const ofWorkers = [
    ['machineDeploymentClass', 'MachineDeployment', machineDeploymentClass?.names, spec.workers?.machineDeployments],
    ['machinePoolClass', 'MachinePool', machinePoolClass?.names, spec.workers?.machinePools],
  ] as const
  for (const [field, what, patterns, classes] of ofWorkers) {
    for (const [index, pattern] of (patterns ?? []).entries()) {
      const name = `${at}.${field}.names[${index}]`
      if (/.\*./.test(pattern) || (pattern.match(/\*/g)?.length ?? 0) > 1) {
        errors.push(invalid(name, pattern, '"*" can only appear once, at the beginning or the end'))
        continue
      }
      const matched = (classes ?? []).filter((one) => matchesName(pattern, one.class))
      if (!matched.some((one) => means(one.bootstrap.templateRef, one.infrastructure.templateRef))) {
        const problem = `selector is enabled but matches neither the bootstrap ref nor the infrastructure ref of a ${what} class`
        errors.push(invalid(name, pattern, problem))
      }
    }
  }
  return errors
}

function jsonPatchErrors({ op, path, value, valueFrom }: JSONPatch, at: string, spec: ClusterClassSpec): FieldError[] {
  const errors: FieldError[] = pathErrors(op, path, `${at}.path`)
  if (op === 'remove') return errors
  if ((value === undefined) === (valueFrom === undefined)) {
    errors.push(invalid(at, path, 'jsonPatch must define one of value or valueFrom'))
  }
  if (!valueFrom) return errors
  const { template, variable } = valueFrom
  if ((template === undefined) === (variable === undefined)) {
    errors.push(invalid(`${at}.valueFrom`, valueFrom, 'valueFrom must define one of template or variable'))
  }
  if (template !== undefined) appendAll(errors, templateErrors(template, `${at}.valueFrom.template`))
  if (variable !== undefined && !isKnownVariable(variable, spec)) {
    const problem = variable.startsWith('builtin')
      ? 'not a defined builtin variable'
      : `variable with name ${variableOf(variable)} cannot be found`
    errors.push(invalid(`${at}.valueFrom.variable`, variable, problem))
  }
  return errors
}

/** Only spec can be patched. Lists can only be prepended or appended to, because other indexes depend on other patches. */
function pathErrors(op: JSONPatch['op'], path: string, at: string): FieldError[] {
  const errors: FieldError[] = []
  if (!path.startsWith('/spec')) errors.push(invalid(at, path, 'jsonPatch path must start with "/spec/"'))
  const positions = path.split('/').filter((token) => token === '-' || /^\d+$/.test(token))
  if (op === 'add' && positions.some((token) => token !== '-' && token !== '0')) {
    errors.push(invalid(at, path, 'jsonPatch path that adds to an array must use "0" or "-" as index'))
  }
  if (op !== 'add' && positions.length > 0) errors.push(invalid(at, path, `jsonPatch path cannot use an array index with ${op}`))
  return errors
}

function isKnownVariable(path: string, { variables = [] }: ClusterClassSpec): boolean {
  const name = variableOf(path)
  return name === 'builtin' ? isBuiltin(path) : variables.some((variable) => variable.name === name)
}

const metadata = ['metadata', 'metadata.labels', 'metadata.annotations']
const ofWorker = [
  'version',
  'class',
  'name',
  'topologyName',
  ...metadata,
  'replicas',
  'bootstrap',
  'bootstrap.configRef',
  'bootstrap.configRef.name',
  'infrastructureRef',
  'infrastructureRef.name',
]
const Builtins: ReadonlySet<string> = new Set([
  'builtin',
  ...tree('builtin.cluster', [
    'name',
    'namespace',
    'uid',
    ...metadata,
    'topology',
    'topology.version',
    'topology.class',
    'topology.classNamespace',
    'topology.classRef',
    'topology.classRef.name',
    'topology.classRef.namespace',
    'network',
    'network.serviceDomain',
    'network.services',
    'network.pods',
  ]),
  ...tree('builtin.controlPlane', [
    'version',
    'name',
    ...metadata,
    'replicas',
    'machineTemplate',
    'machineTemplate.infrastructureRef',
    'machineTemplate.infrastructureRef.name',
  ]),
  ...tree('builtin.machineDeployment', ofWorker),
  ...tree('builtin.machinePool', ofWorker),
])

function tree(root: string, paths: readonly string[]): string[] {
  return [root, ...paths.map((path) => `${root}.${path}`)]
}

/** Labels, annotations and list items have no fixed names. */
const isBuiltin = (path: string): boolean =>
  Builtins.has(path.replace(/\[\d+\]$/, '')) || /^builtin\.\w+\.metadata\.(labels|annotations)\../.test(path)
