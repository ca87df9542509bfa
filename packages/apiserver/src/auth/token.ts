/** Bearer tokens: authenticators, which are called in order until one accepts a token, and the documents of a token issuer. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { User } from './user.ts'

/** Result of authenticating a token. */
export type TokenResult =
  /** `audiences`: the requested audiences for which the token is valid. */
  | { readonly kind: 'known'; readonly user: User; readonly audiences: readonly string[] }
  /** This authenticator does not recognize the token; another may. */
  | { readonly kind: 'unknown' }
  /**
   * This authenticator recognizes the token as one of its kind, but it is invalid or expired. The reason never contains the
   * token.
   */
  | { readonly kind: 'rejected'; readonly reason: string }

/** Authenticates a token, which must be valid for at least one of `audiences`. */
export type AuthenticateToken = (token: string, audiences: readonly string[]) => TokenResult

/** User of a static token. */
export interface TokenUser {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string
}

/** Returns an authenticator of static tokens, which are valid for any audience. `tokens` maps each token to its user. */
export function staticTokens(tokens: ReadonlyMap<string, TokenUser> = new Map()): AuthenticateToken {
  const users = [...tokens].map(([token, user]) => ({ digest: digest(token), user }))
  return (token, audiences) => {
    // Comparing all digests in constant time reveals nothing about any token.
    const tokenDigest = digest(token)
    let user: User | undefined
    for (const candidate of users) if (timingSafeEqual(candidate.digest, tokenDigest)) user = candidate.user
    return user ? { kind: 'known', user: withAuthenticated(user), audiences } : { kind: 'unknown' }
  }
}

/** Combines authenticators, which are called in order. A later authenticator may accept a token that an earlier authenticator rejects. */
export const anyOf =
  (...authenticators: readonly AuthenticateToken[]): AuthenticateToken =>
  (token, audiences) => {
    let rejected: TokenResult | undefined
    for (const authenticate of authenticators) {
      const result = authenticate(token, audiences)
      if (result.kind === 'known') return result
      if (result.kind === 'rejected') rejected ??= result
    }
    return rejected ?? { kind: 'unknown' }
  }

/** Adds the group of all authenticated users. */
export const withAuthenticated = <U extends User>(user: U): U =>
  user.groups.includes('system:authenticated') ? user : { ...user, groups: [...user.groups, 'system:authenticated'] }

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Publishes the configuration and keys with which other servers verify tokens of an issuer. Specification: OpenID Connect Discovery 1.0. */
export interface TokenIssuer {
  /** Returns the public keys as a JSON Web Key Set. */
  jwks(): object
  /**
   * Returns the discovery document; `undefined` when the issuer is not an HTTPS URL.
   * @param server URL at which the client reaches this server
   */
  configuration(server: string): object | undefined
}
