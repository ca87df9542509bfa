/**
 * Computes responses to CanUpdateMachine and CanUpdateMachineSet from the fields that an extension can update. The functions have no
 * side effects except logged warnings.
 */
import type { CanUpdateMachine, CanUpdateMachineSet, RequestOf } from '@capstan/api'
import type { Logger } from '@capstan/kube'
import { draft, equal, getMember, isRecord, setMember } from '@capstan/kube'
import { type AnswerOf, proceedWith } from './answer.ts'
import type { HandlerCall } from './define-extension.ts'
import { type EncodedPatch, patchBetween, type PatchFormat } from './document-patch.ts'

/**
 * A path below the spec of a Machine, infrastructure machine or bootstrap config. The extension can update the field and all
 * fields below it; with `when`, only changes for which `when` returns true. Examples: `version`, `disks[*].sizeGiB` (while the
 * list keeps its length: items are then compared by index), `files` (including added and removed items), `labels.*`.
 */
export type FieldPattern = string | { readonly path: string; readonly when: (change: Change) => boolean }

/** A difference between the current and the desired spec. */
export interface Change {
  /** Path below the spec of the Machine, infrastructure machine or bootstrap config: `disks[0].sizeGiB`. */
  readonly path: string
  /** `undefined` if there is no current value. */
  readonly current: unknown
  /** `undefined` if the value is to be removed. */
  readonly desired: unknown
}

/**
 * The fields that an extension can update, in one list for each of three objects. If the list of an object is absent, the extension can
 * update no field of that object.
 */
export interface InPlaceFields {
  /** Fields of the Machine, such as `version`. */
  readonly machine?: readonly FieldPattern[]
  readonly infrastructureMachine?: readonly FieldPattern[]
  readonly bootstrapConfig?: readonly FieldPattern[]
  /**
   * Format of the patches. Default: JSONPatch. The response has no patch for an object if the format cannot express one of the
   * changes of these fields, such as a change to null with JSONMergePatch.
   */
  readonly format?: PatchFormat
}

/** Handlers for the two hooks that ask whether an in-place update is possible. */
export interface InPlaceHandlers {
  canUpdateMachine(call: HandlerCall<typeof CanUpdateMachine>): AnswerOf<typeof CanUpdateMachine>
  canUpdateMachineSet(call: HandlerCall<typeof CanUpdateMachineSet>): AnswerOf<typeof CanUpdateMachineSet>
}

/**
 * Returns handlers for both hooks that ask whether an in-place update is possible. Fields declared for machines apply to their templates
 * as well. Responses omit changes of other fields; core then replaces the machine.
 *
 * @example
 * const inPlace = inPlaceUpdates({ machine: ['version'], infrastructureMachine: ['disks[*].sizeGiB'], bootstrapConfig: ['files'] })
 * on(CanUpdateMachine, { name: 'can-update-machine' }, inPlace.canUpdateMachine)
 * on(CanUpdateMachineSet, { name: 'can-update-machine-set' }, inPlace.canUpdateMachineSet)
 *
 * @throws TypeError for an invalid path
 */
export function inPlaceUpdates({ format = 'JSONPatch', ...fields }: InPlaceFields): InPlaceHandlers {
  const patterns = {
    machine: (fields.machine ?? []).map(compilePattern),
    infrastructureMachine: (fields.infrastructureMachine ?? []).map(compilePattern),
    bootstrapConfig: (fields.bootstrapConfig ?? []).map(compilePattern),
  }
  const patches = (parts: readonly Part[], log: Logger) => {
    const patchesByPart = parts.flatMap(({ machinePart, from, to, specPath, patchField }): [string, EncodedPatch][] => {
      const covered = changesOf({ from, to, specPath }).filter((change) => patterns[machinePart].some((covers) => covers(change)))
      try {
        const patch = covered.length === 0 ? undefined : patchBetween(from!, withChanges(from!, specPath, covered), format)
        return patch ? [[patchField, patch]] : []
      } catch (err) {
        // Without a patch the changes are not covered, and core replaces the machine.
        log.warn('Cannot express the changes as a patch', { machinePart, format, err })
        return []
      }
    })
    return proceedWith(Object.fromEntries(patchesByPart))
  }
  return {
    canUpdateMachine: ({ request, log }) => patches(partsOf(request), log),
    canUpdateMachineSet: ({ request, log }) => patches(partsOf(request), log),
  }
}

/**
 * Returns the differences between the current and the desired specs of the Machine, infrastructure machine and bootstrap
 * config, or of their templates, sorted by field. The list of an object is empty if the current or the desired object is
 * missing, or if they have different types.
 */
export function inPlaceChanges(request: Objects<typeof CanUpdateMachine> | Objects<typeof CanUpdateMachineSet>): {
  readonly [machinePart in MachinePart]: readonly Change[]
} {
  const changes = Object.fromEntries(partsOf(request).map((part) => [part.machinePart, changesOf(part).map(asChange)]))
  return changes as { [machinePart in MachinePart]: Change[] }
}

type MachinePart = 'machine' | 'infrastructureMachine' | 'bootstrapConfig'
type Objects<H extends typeof CanUpdateMachine | typeof CanUpdateMachineSet> = Pick<RequestOf<H>, 'current' | 'desired'>

interface Part {
  readonly machinePart: MachinePart
  readonly from: object | undefined
  readonly to: object | undefined
  /** Path of the compared spec in the object: `spec`, or `spec.template.spec` in MachineSets and templates. */
  readonly specPath: readonly string[]
  /** Name of the response's field that contains the patch. */
  readonly patchField: string
}

function partsOf(request: Objects<typeof CanUpdateMachine> | Objects<typeof CanUpdateMachineSet>): Part[] {
  const hasMachines = 'machine' in request.current
  const { current, desired } = request as { [when in 'current' | 'desired']: { readonly [name: string]: object | undefined } }
  const part = (machinePart: MachinePart, name: string): Part => ({
    machinePart,
    from: current[name],
    to: desired[name],
    specPath: hasMachines ? ['spec'] : ['spec', 'template', 'spec'],
    patchField: `${name}Patch`,
  })
  return hasMachines
    ? [
        part('machine', 'machine'),
        part('infrastructureMachine', 'infrastructureMachine'),
        part('bootstrapConfig', 'bootstrapConfig'),
      ]
    : [
        part('machine', 'machineSet'),
        part('infrastructureMachine', 'infrastructureMachineTemplate'),
        part('bootstrapConfig', 'bootstrapConfigTemplate'),
      ]
}

type Token = string | number
interface Difference {
  readonly tokens: readonly Token[]
  readonly current: unknown
  readonly desired: unknown
}

/** Returns the differences; an empty list if an object is missing, or if the objects have different types and cannot be updated. */
function changesOf({ from, to, specPath }: Pick<Part, 'from' | 'to' | 'specPath'>): Difference[] {
  if (!from || !to || !isSameType(from, to)) return []
  return differences(memberAt(from, specPath), memberAt(to, specPath), [])
}

const isSameType = (a: object, b: object): boolean =>
  ['apiVersion', 'kind'].every((name) => memberAt(a, [name]) === memberAt(b, [name]))

const memberAt = (object: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (isRecord(value) ? getMember(value, name) : undefined), object)

/** Compares lists of equal length item by item. Returns each field of an added object, but only the path of a removed object. */
function differences(current: unknown, desired: unknown, tokens: readonly Token[]): Difference[] {
  if (equal(current, desired)) return []
  const isNew = current === undefined && isRecord(desired) && Object.keys(desired).length > 0
  if ((isNew || isRecord(current)) && isRecord(desired)) {
    const currentFields: Record<string, unknown> = isRecord(current) ? current : {}
    const names = [...new Set([...Object.keys(currentFields), ...Object.keys(desired)])].sort()
    return names.flatMap((name) => differences(getMember(currentFields, name), getMember(desired, name), [...tokens, name]))
  }
  if (Array.isArray(current) && Array.isArray(desired) && current.length === desired.length) {
    return current.flatMap((item, index) => differences(item, desired[index], [...tokens, index]))
  }
  return [{ tokens, current, desired }]
}

function withChanges(object: object, specPath: readonly string[], changes: readonly Difference[]): object {
  const edited = draft(object)
  for (const { tokens, desired } of changes) {
    const path = [...specPath, ...tokens]
    const lastToken = path.pop()!
    let parent: unknown = edited
    for (const token of path) {
      if (Array.isArray(parent)) parent = parent[token as number]
      else if (isRecord(parent)) {
        if (getMember(parent, String(token)) === undefined) setMember(parent, String(token), {})
        parent = getMember(parent, String(token))
      }
    }
    if (Array.isArray(parent)) parent[lastToken as number] = draft(desired)
    else if (isRecord(parent) && desired === undefined) delete parent[lastToken]
    else if (isRecord(parent)) setMember(parent, String(lastToken), draft(desired))
  }
  return edited
}

const asChange = ({ tokens, current, desired }: Difference): Change => ({ path: pathText(tokens), current, desired })

const pathText = (tokens: readonly Token[]): string =>
  tokens
    .map((token, index) => {
      if (typeof token === 'number') return `[${token}]`
      if (!/^[A-Za-z_$][\w$]*$/.test(token)) return `[${JSON.stringify(token)}]`
      return index === 0 ? token : `.${token}`
    })
    .join('')

/** Returns a function that matches changes at or below the path of the pattern, if its condition accepts them. */
function compilePattern(pattern: FieldPattern): (change: Difference) => boolean {
  const { path, when } = typeof pattern === 'string' ? { path: pattern, when: () => true } : pattern
  const patternTokens = parsePattern(path)
  return (change) =>
    patternTokens.length <= change.tokens.length &&
    patternTokens.every((matches, index) => matches(change.tokens[index]!)) &&
    when(asChange(change))
}

function parsePattern(path: string): ((token: Token) => boolean)[] {
  const segment = /\[(\d+|\*|"(?:[^"\\]|\\.)*")\]|(?:^|\.)([^.[\]]+)/y
  const matchers: ((token: Token) => boolean)[] = []
  while (segment.lastIndex < path.length) {
    const [, inBrackets, name] = segment.exec(path) ?? []
    if (inBrackets === '*') matchers.push((token) => typeof token === 'number')
    else if (inBrackets?.startsWith('"')) matchers.push((token) => token === JSON.parse(inBrackets))
    else if (inBrackets !== undefined) matchers.push((token) => token === Number(inBrackets))
    else if (name === '*') matchers.push((token) => typeof token === 'string')
    else if (name !== undefined) matchers.push((token) => token === name)
    else
      throw new TypeError(
        `${JSON.stringify(path)} is no path below a spec: expected one such as version, disks[*].sizeGiB or labels.*`,
      )
  }
  if (matchers.length === 0 || /^(spec)?\./.test(path)) {
    throw new TypeError(`${JSON.stringify(path)}: paths begin below the spec of the machine, such as version`)
  }
  return matchers
}
