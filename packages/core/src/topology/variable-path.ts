import { getMember, isRecord, type Json, type JsonObject } from '@capstan/kube'

/**
 * The value at a path such as `builtin.cluster.name` or `network.cidrs[0]`: names joined by dots, each with at most one index.
 *
 * @throws Error that names the part which is not there
 */
export function variableValue(variables: JsonObject, path: string): Json {
  let value: Json = variables
  let at = ''
  for (const segment of path.split('.')) {
    const { name, index } = parseSegment(segment, path)
    at = at === '' ? name : `${at}.${name}`
    const member: unknown = isRecord(value) ? getMember(value, name) : undefined
    if (member === undefined) throw new Error(`failed to get variable "${path}": "${at}" is not set`)
    value = member as Json
    if (index === undefined) continue
    at += `[${index}]`
    if (!Array.isArray(value)) throw new Error(`failed to get variable "${path}": "${at}" is not in a list`)
    const item: Json | undefined = value[index]
    if (item === undefined) throw new Error(`failed to get variable "${path}": "${at}" is past the end of the list`)
    value = item
  }
  return value
}

/** The variable that a path begins with. */
export const variableOf = (path: string): string => /^[^.[]*/.exec(path)![0]

function parseSegment(segment: string, path: string): { name: string; index: number | undefined } {
  const match = /^([^[\]]+)(?:\[(\d+)\])?$/.exec(segment)
  if (!match) throw new Error(`failed to get variable "${path}": invalid path segment "${segment}"`)
  return { name: match[1]!, index: match[2] === undefined ? undefined : Number(match[2]) }
}
