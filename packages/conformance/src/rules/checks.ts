/** Functions that declare checks and describe their problems. */
import type { ContractVersion } from '@capstan/api/contract'
import { type Claim, claimsOf, type ContractName, type ProviderKind, schemaPath } from '../manifests.ts'
import type { Problem, StaticCheck } from '../rule.ts'
import { deepestPath, type FieldType, hasField, propertiesPath, typeProblem } from '../schema-fields.ts'

/** The kinds to which a check applies. */
interface KindSelection {
  readonly contracts?: readonly ContractName[]
  /** `true`: kinds of templates; `'both'`: kinds of objects and of templates. Default: kinds of objects. */
  readonly templates?: boolean | 'both'
}

const isSelected = ({ contract, isTemplate }: ProviderKind, { contracts, templates = false }: KindSelection): boolean =>
  (contracts === undefined || contracts.includes(contract)) && (templates === 'both' || templates === isTemplate)

/** Declares a check of each selected kind. `looksAt`: the checked parts of the manifests, for the reference page. */
export const ofEachKind = (
  looksAt: string,
  selection: KindSelection,
  problems: (kind: ProviderKind, kinds: readonly ProviderKind[]) => Problem[],
): StaticCheck => ({
  looksAt,
  run({ kinds }) {
    const selected = kinds.filter((kind) => isSelected(kind, selection))
    return selected.length === 0 ? undefined : selected.flatMap((kind) => problems(kind, kinds))
  },
})

/**
 * Declares a check of each claim: a contract version, and a version of a selected kind that the label of this contract version names.
 * `looksAt`: the checked parts of the manifests, for the reference page. `versions`: the contract versions to which the rule applies; default
 * all. `applies`: whether the rule applies to a claim; default true.
 */
export const ofEachClaim = (
  looksAt: string,
  selection: KindSelection & { readonly versions?: readonly ContractVersion[]; applies?(claim: Claim): boolean },
  problems: (claim: Claim) => Problem[],
): StaticCheck => ({
  looksAt,
  run({ kinds }) {
    const selected = kinds
      .filter((kind) => isSelected(kind, selection))
      .flatMap(claimsOf)
      .filter((claim) => selection.versions?.includes(claim.contractVersion) ?? true)
      .filter((claim) => selection.applies?.(claim) ?? true)
    return selected.length === 0 ? undefined : selected.flatMap(problems)
  },
})

/** Returns a problem at a field of a schema. */
export const schemaProblem = (claim: Claim, field: string, message: string, edit: string): Problem => ({
  manifest: claim.manifest,
  path: `${schemaPath(claim)}${propertiesPath(field)}`,
  message: `${claim.crd.spec.names.kind} ${claim.version.name} claims contract ${claim.contractVersion}: ${message}`,
  edit,
})

/** Returns the problem of a required field that is absent or has the wrong type; otherwise an empty list. */
export function requiredField(claim: Claim, path: string, type: FieldType): Problem[] {
  if (!hasField(claim.schema, path)) {
    return [
      schemaProblem(
        claim,
        deepestPath(claim.schema, path),
        `${path} is missing`,
        `Add ${path} (${type}) to version ${claim.version.name}${path.startsWith('status.') ? ', and let the controller set it' : ''}.`,
      ),
    ]
  }
  return optionalField(claim, path, type)
}

/** Returns the problem of an optional field that has the wrong type; otherwise, also if the field is absent, an empty list. */
export function optionalField(claim: Claim, path: string, type: FieldType): Problem[] {
  const problem = typeProblem(claim.schema, path, type)
  return problem === undefined ? [] : [schemaProblem(claim, path, problem, `Change the type of ${path} to ${type}.`)]
}

/**
 * Returns the problem of a list whose items have a type other than `expected`; an empty list if `actual`, the declared type of the items, is
 * absent or correct.
 */
export function itemTypeProblem(claim: Claim, path: string, actual: string | undefined, expected: FieldType): Problem[] {
  if (actual === undefined || actual === expected) return []
  return [
    schemaProblem(
      claim,
      path,
      `items of ${path} are of type ${actual}, expected ${expected}`,
      `Make ${path} a list of ${expected}.`,
    ),
  ]
}
