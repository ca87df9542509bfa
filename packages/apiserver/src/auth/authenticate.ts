/**
 * Who sends a request: the subject of a verified client certificate, or the owner of a bearer token.
 * Upstream: k8s.io/apiserver/pkg/authentication, in the order that kube-apiserver asks its authenticators.
 */
import type { Identity } from '../http/exchange.ts'
import { type AuthenticateToken, staticTokens, type TokenUser, withAuthenticated } from './token.ts'

export interface Credentials {
  /** Subject of the client's certificate, present only when it chains to the client CA. */
  readonly certificate?: {
    readonly commonName: string
    readonly organizations: readonly string[]
    /** SHA-256 of the certificate, hex. */
    readonly fingerprint?: string
  }
  /** The Authorization header. */
  readonly authorization?: string
}

export type Authenticate = (credentials: Credentials) => Identity

/** `tokens` maps each bearer token to its owner, or is asked about each. */
export function authenticator(
  tokens: ReadonlyMap<string, TokenUser> | AuthenticateToken = new Map(),
  apiAudiences: readonly string[] = [],
): Authenticate {
  const authenticateToken = typeof tokens === 'function' ? tokens : staticTokens(tokens)
  return ({ certificate, authorization }) => {
    if (certificate && certificate.commonName !== '') {
      const { commonName: name, organizations: groups, fingerprint } = certificate
      const extra = fingerprint === undefined ? {} : { extra: { [credentialID]: [`X509SHA256=${fingerprint}`] } }
      return { kind: 'user', ...withAuthenticated({ name, groups, ...extra }) }
    }
    // Upstream: whoever shows something else than a token, or a space too many before it, has shown nothing.
    const [scheme = '', token = ''] = (authorization ?? '').trim().split(' ', 2)
    if (scheme.toLowerCase() !== 'bearer' || token === '') return { kind: 'anonymous' }
    const verdict = authenticateToken(token, apiAudiences)
    return verdict.kind === 'known' ? { kind: 'user', ...verdict.user } : { kind: 'refused' }
  }
}

/** Says in audits and reviews which credential somebody showed. */
export const credentialID = 'authentication.kubernetes.io/credential-id'
