/**
 * Who sends a request: the subject of a verified client certificate, or the owner of a bearer token.
 * Upstream: k8s.io/apiserver/pkg/authentication, in the order that kube-apiserver asks its authenticators.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Identity } from '../http/exchange.ts'

export interface Credentials {
  /** Subject of the client's certificate, present only when it chains to the client CA. */
  readonly certificate?: { readonly commonName: string; readonly organizations: readonly string[] }
  /** The Authorization header. */
  readonly authorization?: string
}

export interface TokenUser {
  readonly name: string
  readonly groups: readonly string[]
}

export type Authenticate = (credentials: Credentials) => Identity

/** `tokens` maps each bearer token to its owner. */
export function authenticator(tokens: ReadonlyMap<string, TokenUser> = new Map()): Authenticate {
  const users = [...tokens].map(([token, user]) => ({ digest: digest(token), user }))
  return ({ certificate, authorization }) => {
    if (certificate && certificate.commonName !== '') return userOf(certificate.commonName, certificate.organizations)
    if (authorization === undefined || authorization === '') return { kind: 'anonymous' }
    const [, token] = /^Bearer +(\S+)\s*$/i.exec(authorization) ?? []
    if (token === undefined) return { kind: 'refused' }
    // Digests have one length, and all are compared: how long it takes tells nothing about any token.
    const asked = digest(token)
    let found: TokenUser | undefined
    for (const known of users) if (timingSafeEqual(known.digest, asked)) found = known.user
    return found ? userOf(found.name, found.groups) : { kind: 'refused' }
  }
}

const userOf = (name: string, groups: readonly string[]): Identity => ({
  kind: 'user',
  name,
  groups: groups.includes('system:authenticated') ? groups : [...groups, 'system:authenticated'],
})

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()
