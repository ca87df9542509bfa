/** Go's names of hook fields and types, for error messages like those of Go. Upstream: api/runtime/hooks/v1alpha1 and api/core/v1beta2, v1.14. */
import type { JSONSchema } from '@capstan/kube'

/**
 * Returns Go's path of a field. For a field of the document itself that Go declares in embedded structs, such as `status`, the
 * path begins with the names of these structs.
 */
export function goFieldPath({ properties }: JSONSchema, name: string, isOfDocument: boolean): string[] {
  if (!isOfDocument) return [name]
  const isRetry = properties?.['retryAfterSeconds'] !== undefined
  switch (name) {
    case 'apiVersion':
    case 'kind':
      return ['TypeMeta', name]
    case 'settings':
      return ['CommonRequest', name]
    case 'status':
    case 'message':
      return [...(isRetry ? ['CommonRetryResponse'] : []), 'CommonResponse', name]
    case 'retryAfterSeconds':
      return ['CommonRetryResponse', name]
    default:
      return [name]
  }
}

/** Returns a map from the folded names of the fields to their declared names. */
export const byFoldedName = (properties: object): Map<string, string> =>
  new Map(Object.keys(properties).map((name) => [foldKey(name), name]))

/**
 * Folds the case of a key. Two non-ASCII letters fold to ASCII letters: U+017F to s, and, by `toLowerCase`, U+212A to k.
 * Upstream: encoding/json, foldName.
 */
export const foldKey = (key: string): string => key.replaceAll('\u017f', 's').toLowerCase()

/** Returns Go's name of the type of a field. */
export const goType = (struct: string, name: string, schema: JSONSchema, isOfDocument: boolean): string =>
  isOfDocument && name === 'status' ? 'v1alpha1.ResponseStatus' : (types[struct]?.[name] ?? goTypeOf(schema))

/** Returns Go's name of a type, as far as the schema determines it. */
function goTypeOf({ type, format, items, additionalProperties }: JSONSchema): string {
  switch (type) {
    case 'integer':
      return format ?? 'int64'
    case 'number':
      return 'float64'
    case 'boolean':
      return 'bool'
    case 'string':
      return format === 'byte' ? '[]uint8' : 'string'
    case 'array':
      return `[]${goTypeOf(items ?? {})}`
    case 'object':
    case undefined:
  }
  return typeof additionalProperties === 'object' ? `map[string]${goTypeOf(additionalProperties)}` : 'object'
}

const patchTypes = (...names: string[]) => Object.fromEntries(names.map((name) => [name, 'v1alpha1.Patch']))
const stepsType = '[]v1alpha1.UpgradeStep'
const schemaType = 'v1beta2.JSONSchemaProps'

/** Go's types of fields, by struct and field, where the schema does not determine them. */
const types: { readonly [struct: string]: { readonly [field: string]: string } } = {
  DiscoveryResponse: { handlers: '[]v1alpha1.ExtensionHandler' },
  ExtensionHandler: { requestHook: 'v1alpha1.GroupVersionHook', failurePolicy: 'v1alpha1.FailurePolicy' },
  GenerateUpgradePlanResponse: { controlPlaneUpgrades: stepsType, workersUpgrades: stepsType },
  GeneratePatchesResponse: { items: '[]v1alpha1.GeneratePatchesResponseItem' },
  GeneratePatchesResponseItem: { uid: 'types.UID', patchType: 'v1alpha1.PatchType' },
  CanUpdateMachineResponse: patchTypes('machinePatch', 'infrastructureMachinePatch', 'bootstrapConfigPatch'),
  CanUpdateMachineSetResponse: patchTypes(
    'machineSetPatch',
    'infrastructureMachineTemplatePatch',
    'bootstrapConfigTemplatePatch',
  ),
  Patch: { patchType: 'v1alpha1.PatchType' },
  DiscoverVariablesResponse: { variables: '[]v1beta2.ClusterClassVariable' },
  ClusterClassVariable: {
    deprecatedV1Beta1Metadata: 'v1beta2.ClusterClassVariableMetadata',
    schema: 'v1beta2.VariableSchema',
  },
  VariableSchema: { openAPIV3Schema: schemaType },
  JSONSchemaProps: {
    properties: `map[string]${schemaType}`,
    additionalProperties: schemaType,
    items: schemaType,
    not: schemaType,
    allOf: `[]${schemaType}`,
    anyOf: `[]${schemaType}`,
    oneOf: `[]${schemaType}`,
    enum: '[]v1.JSON',
    'x-metadata': 'v1beta2.VariableSchemaMetadata',
    'x-kubernetes-validations': '[]v1beta2.ValidationRule',
  },
  ValidationRule: { reason: 'v1beta2.FieldValueErrorReason' },
}
