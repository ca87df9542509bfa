/** Reads the hooks that a release calls from its published OpenAPI document: their names, without schemas. */
import { isRecord } from '@capstan/kube'
import type { ReleasedCatalog } from './release.ts'

/** Returns the hooks of a document such as upstream's `runtime-sdk-openapi.yaml`; `undefined` for other documents. */
export function publishedCatalog(document: unknown): Pick<ReleasedCatalog, 'release' | 'hooks'> | undefined {
  if (!isRecord(document) || !isRecord(document.paths)) return undefined
  const { info } = document
  const release = isRecord(info) && typeof info.version === 'string' ? info.version : 'that release'
  const hooks = Object.entries(document.paths).flatMap(([path, item]) => {
    const [, group, version, lowered] = path.split('/')
    const post = isRecord(item) ? item.post : undefined
    if (!group || !version || !lowered || !isRecord(post)) return []
    const deprecated = post.deprecated === true ? { deprecated: { release, date: '' } } : {}
    return [{ group, version, name: nameIn(post, lowered), blocking: false, ...deprecated, request: {}, response: {} }]
  })
  return hooks.length === 0 ? undefined : { release, hooks }
}

/** Returns the name of the hook with its case: the path is in lower case, but the request type is named after the hook. */
function nameIn(operation: object, lowered: string): string {
  const [, name] = /"[^"]*[./]([A-Za-z0-9]+)Request"/.exec(JSON.stringify(operation)) ?? []
  return name?.toLowerCase() === lowered ? name : lowered
}
