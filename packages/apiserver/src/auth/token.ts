/** Bearer tokens: who looks after them, one after the other, until somebody knows whose a token is. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { User } from '../engine.ts'

/** What is found out about a token. */
export type TokenVerdict =
  /** `audiences`: those asked for that the token is meant for. */
  | { readonly kind: 'known'; readonly user: User; readonly audiences: readonly string[] }
  /** Not one of these tokens. */
  | { readonly kind: 'unknown' }
  /** One of these tokens, and not valid (any more). The reason never has the token in it. */
  | { readonly kind: 'refused'; readonly why: string }

export type AuthenticateToken = (token: string, audiences: readonly string[]) => TokenVerdict

/** The owner of a static token. */
export interface TokenUser {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string
}

/** `tokens` maps each token to its owner. They are for any audience. */
export function staticTokens(tokens: ReadonlyMap<string, TokenUser> = new Map()): AuthenticateToken {
  const users = [...tokens].map(([token, user]) => ({ digest: digest(token), user }))
  return (token, audiences) => {
    // Digests have one length, and all are compared: how long it takes tells nothing about any token.
    const asked = digest(token)
    let user: User | undefined
    for (const known of users) if (timingSafeEqual(known.digest, asked)) user = known.user
    return user ? { kind: 'known', user: withAuthenticated(user), audiences } : { kind: 'unknown' }
  }
}

/** Asks one after the other; what one refuses, another may still know. */
export const anyOf =
  (...authenticators: readonly AuthenticateToken[]): AuthenticateToken =>
  (token, audiences) => {
    let refused: TokenVerdict | undefined
    for (const authenticate of authenticators) {
      const verdict = authenticate(token, audiences)
      if (verdict.kind === 'known') return verdict
      if (verdict.kind === 'refused') refused ??= verdict
    }
    return refused ?? { kind: 'unknown' }
  }

/** Everybody who is known is in this group. */
export const withAuthenticated = <U extends User>(user: U): U =>
  user.groups.includes('system:authenticated') ? user : { ...user, groups: [...user.groups, 'system:authenticated'] }

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()
