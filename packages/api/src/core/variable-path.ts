/**
 * Reads values of variables by paths, as inline patches and extensions do. Pure.
 * Upstream: core/reconcilers/topology/cluster/patches/variables, v1.14.
 */
import { getMember, isRecord, type Json, type JsonObject } from '@capstan/kube'

/** Error for a path that is invalid, or for a value on the path that is absent or has another type than the path requires. */
export class VariableError extends Error {
  override readonly name = 'VariableError'
  readonly problem: 'not-set' | 'wrong-type' | 'bad-path'

  constructor(problem: VariableError['problem'], path: string, reason: string) {
    super(`failed to get variable "${path}": ${reason}`)
    this.problem = problem
  }
}

/**
 * Returns the value at a path such as `builtin.cluster.name` or `network.cidrs[0]`: names joined by dots, each with at most one index.
 *
 * @throws VariableError when the path is invalid, or a value on the path is absent or has another type than the path requires
 */
export function variableValue(variables: JsonObject, path: string): Json {
  let value: Json = variables
  let pathSoFar = ''
  for (const segment of path.split('.')) {
    const { name, index } = parseSegment(segment, path)
    if (!isRecord(value) && !Array.isArray(value)) throw new VariableError('wrong-type', path, `"${pathSoFar}" is not an object`)
    pathSoFar = pathSoFar === '' ? name : `${pathSoFar}.${name}`
    const member = memberOrItem(value, name)
    if (member === undefined) throw new VariableError('not-set', path, `"${pathSoFar}" is not set`)
    value = member as Json
    if (index === undefined) continue
    pathSoFar += `[${index}]`
    if (!Array.isArray(value)) throw new VariableError('wrong-type', path, `"${pathSoFar}" is not in a list`)
    const item: Json | undefined = value[index]
    if (item === undefined) throw new VariableError('not-set', path, `"${pathSoFar}" is past the end of the list`)
    value = item
  }
  return value
}

/** Returns a member of an object, or an item of a list: upstream's parser accepts `cidrs.0` as well as `cidrs[0]`. */
export function memberOrItem(value: Json, name: string): Json | undefined {
  if (Array.isArray(value)) return /^\d+$/.test(name) ? value[Number(name)] : undefined
  return isRecord(value) ? (getMember(value, name) as Json | undefined) : undefined
}

/** Returns the name of the variable in a path. */
export const variableOf = (path: string): string => /^[^.[]*/.exec(path)![0]

function parseSegment(segment: string, path: string): { name: string; index: number | undefined } {
  const match = /^([^[\]]+)(?:\[(\d+)\])?$/.exec(segment)
  if (!match) throw new VariableError('bad-path', path, `invalid path segment "${segment}"`)
  return { name: match[1]!, index: match[2] === undefined ? undefined : Number(match[2]) }
}
