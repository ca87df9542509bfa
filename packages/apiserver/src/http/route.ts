/** Classifies paths, without I/O. The resource of a path need not exist: that is checked later. */
import type { ResourcePath } from '@capstan/kube'
import { parseResourcePath } from '@capstan/kube'

export type Route =
  /** `/healthz`, `/livez` or `/readyz`, or checks under these paths, such as `/readyz/etcd`. */
  | { readonly kind: 'health'; readonly path: HealthPath; readonly only: string }
  /** `/metrics` and `/metrics/slis` */
  | { readonly kind: 'metrics'; readonly of: 'requests' | 'health' }
  /** Diagnostic pages for people. */
  | { readonly kind: 'flagz' | 'statusz' }
  | { readonly kind: 'version' }
  /** `/` and `/index.html`: a list of paths. */
  | { readonly kind: 'paths' }
  /** `/api` */
  | { readonly kind: 'core' }
  /** `/apis` */
  | { readonly kind: 'groups' }
  /** `/apis/GROUP` */
  | { readonly kind: 'group'; readonly group: string }
  /** `/api/VERSION`, `/apis/GROUP/VERSION` */
  | { readonly kind: 'resources'; readonly group: string; readonly version: string }
  /** `/openapi/v3`: the list of documents. */
  | { readonly kind: 'openapi' }
  /** `/openapi/v3/PATH`, where PATH is the path of a group version without the first slash, such as `apis/apps/v1`. */
  | { readonly kind: 'openapi-document'; readonly path: string }
  /** `/openapi/v2` */
  | { readonly kind: 'openapi-v2' }
  /** `/openid/v1/jwks`: public keys that verify service account tokens. */
  | { readonly kind: 'jwks' }
  /** `/.well-known/openid-configuration`: issuer of service account tokens, and URL of `/openid/v1/jwks`. */
  | { readonly kind: 'openid-configuration' }
  | { readonly kind: 'resource'; readonly path: ResourcePath }
  | { readonly kind: 'none' }

export type HealthPath = 'healthz' | 'livez' | 'readyz'

export function routeOf(path: string): Route {
  const hasTrailingSlash = path.endsWith('/')
  const [root = '', second = '', third, ...furtherSegments] = path.replace(/\/$/, '').slice(1).split('/')
  switch (root) {
    case '':
      return path === '/' ? { kind: 'paths' } : { kind: 'none' }
    case 'index.html':
      return second === '' ? { kind: 'paths' } : { kind: 'none' }
    case 'healthz':
    case 'livez':
    case 'readyz':
      if (hasTrailingSlash) return { kind: 'none' }
      return { kind: 'health', path: root, only: [second, third, ...furtherSegments].filter(Boolean).join('/') }
    case 'metrics':
      if (hasTrailingSlash || third !== undefined || !['', 'slis'].includes(second)) return { kind: 'none' }
      return { kind: 'metrics', of: second === '' ? 'requests' : 'health' }
    case 'flagz':
    case 'statusz':
      return second === '' ? { kind: root } : { kind: 'none' }
    case 'version':
      return second === '' ? { kind: 'version' } : { kind: 'none' }
    case 'openid':
      return path === '/openid/v1/jwks' ? { kind: 'jwks' } : { kind: 'none' }
    case '.well-known':
      return path === '/.well-known/openid-configuration' ? { kind: 'openid-configuration' } : { kind: 'none' }
    case 'openapi':
      if (hasTrailingSlash) return { kind: 'none' }
      if (second === 'v2' && third === undefined) return { kind: 'openapi-v2' }
      if (second !== 'v3') return { kind: 'none' }
      return third === undefined ? { kind: 'openapi' } : { kind: 'openapi-document', path: [third, ...furtherSegments].join('/') }
    case 'api':
      if (second === '') return { kind: 'core' }
      if (third === undefined) return { kind: 'resources', group: '', version: second }
      break
    case 'apis':
      if (second === '') return { kind: 'groups' }
      if (third === undefined) return { kind: 'group', group: second }
      if (furtherSegments.length === 0) return { kind: 'resources', group: second, version: third }
      break
    default:
  }
  const resource = parseResourcePath(path)
  return resource ? { kind: 'resource', path: resource } : { kind: 'none' }
}

/** Reports whether anonymous requests may use the route when the authorization mode is AlwaysAllow. */
export const isPublic = ({ kind }: Route): boolean => kind === 'health' || kind === 'version'
