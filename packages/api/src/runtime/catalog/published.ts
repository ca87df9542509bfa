/** Reads the names and versions of a release's hooks from the OpenAPI document that is published with the release. */
import { isRecord } from '@capstan/kube'
import type { ReleasedCatalog } from './release.ts'

/**
 * Returns the hooks of a document such as upstream's `runtime-sdk-openapi.yaml`; `undefined` if it describes no hook. Only group, version, name
 * and whether the hook is deprecated are read: `blocking`, `request` and `response` are placeholders, and a deprecation has the release of the
 * document and no date.
 */
export function publishedCatalog(document: unknown): Pick<ReleasedCatalog, 'release' | 'hooks'> | undefined {
  if (!isRecord(document) || !isRecord(document.paths)) return undefined
  const { info } = document
  const release = isRecord(info) && typeof info.version === 'string' ? info.version : 'that release'
  const hooks = Object.entries(document.paths).flatMap(([path, item]) => {
    const [, group, version, lowerCaseName] = path.split('/')
    const post = isRecord(item) ? item.post : undefined
    if (!group || !version || !lowerCaseName || !isRecord(post)) return []
    const deprecated = post.deprecated === true ? { deprecated: { release, date: '' } } : {}
    return [{ group, version, name: nameIn(post, lowerCaseName), blocking: false, ...deprecated, request: {}, response: {} }]
  })
  return hooks.length === 0 ? undefined : { release, hooks }
}

/**
 * Returns the name of the hook with upper-case letters. The path is in lower case, but the type of the request contains the name. Without such
 * a type, returns the name in lower case.
 */
function nameIn(operation: object, lowerCaseName: string): string {
  const [, name] = /"[^"]*[./]([A-Za-z0-9]+)Request"/.exec(JSON.stringify(operation)) ?? []
  return name?.toLowerCase() === lowerCaseName ? name : lowerCaseName
}
