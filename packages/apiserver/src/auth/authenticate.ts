/**
 * Authenticates requests: by the subject of a verified client certificate, or by a bearer token. Upstream:
 * k8s.io/apiserver/pkg/authentication, in the order of kube-apiserver's authenticators.
 */
import type { User } from './user.ts'
import { type AuthenticateToken, staticTokens, type TokenUser, withAuthenticated } from './token.ts'

/** Result of authentication. */
export type Identity =
  | ({ readonly kind: 'user' } & User)
  /** No credentials were presented. */
  | { readonly kind: 'anonymous' }
  /** The credentials are invalid. */
  | { readonly kind: 'rejected' }

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

/**
 * Returns the authenticator of a server. `tokens` maps each bearer token to its user, or is a function that authenticates
 * tokens. Such a function also gets `apiAudiences`, the audiences of the server, to compare them with those of the token.
 */
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
    // Upstream: another scheme, or more than one space before the token, counts as no credentials.
    const [scheme = '', token = ''] = (authorization ?? '').trim().split(' ', 2)
    if (scheme.toLowerCase() !== 'bearer' || token === '') return { kind: 'anonymous' }
    const result = authenticateToken(token, apiAudiences)
    return result.kind === 'known' ? { kind: 'user', ...result.user } : { kind: 'rejected' }
  }
}

/** Key of `extra` that identifies the credential in audits and reviews. */
export const credentialID = 'authentication.kubernetes.io/credential-id'
