/**
 * Authenticates and authorizes requests for diagnostics: sends TokenReviews and SubjectAccessReviews to the API server.
 * Upstream: sigs.k8s.io/controller-runtime/pkg/metrics/filters, WithAuthenticationAndAuthorization.
 */
import { createHash } from 'node:crypto'
import { type Client, type Clock, messageOf, minutes, seconds, SubjectAccessReview, TokenReview } from '@capstan/kube'

/** Result of a review: whether the request is allowed, or how to reject it. */
export type AccessDecision =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'rejected'; readonly status: 401 | 403 | 500; readonly message: string }

/**
 * How long results are cached. As upstream, except that upstream caches invalid tokens for one minute, and allowed requests
 * for five.
 */
const Lifetimes = { user: minutes(1), allowed: minutes(1), rejected: seconds(30) }
/** Maximum number of results in each cache, so that a client that tries many tokens cannot exhaust memory. */
const MaxCached = 1000

interface User {
  readonly username: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: { [key: string]: string[] }
}

/** Reviews requests by method, path and bearer token. The caches contain hashes of tokens, but no tokens. */
export class AccessReviewer {
  readonly #client: Client
  readonly #clock: Clock
  readonly #users = new Map<string, { readonly user: User | undefined; readonly until: number }>()
  readonly #decisions = new Map<string, { readonly isAllowed: boolean; readonly until: number }>()

  constructor(client: Client, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  async review(request: Request): Promise<AccessDecision> {
    const [, token] = /^Bearer\s+(\S+)$/i.exec(request.headers.get('authorization') ?? '') ?? []
    if (token === undefined) return { kind: 'rejected', status: 401, message: 'Unauthorized' }
    let user: User | undefined
    try {
      user = await this.#authenticate(token)
    } catch (err) {
      return { kind: 'rejected', status: 500, message: `Authentication failed: ${messageOf(err)}` }
    }
    if (!user) return { kind: 'rejected', status: 401, message: 'Unauthorized' }
    const { pathname: path } = new URL(request.url)
    try {
      if (await this.#authorize(user, request.method.toLowerCase(), path)) return { kind: 'allowed' }
    } catch (err) {
      return { kind: 'rejected', status: 500, message: `Authorization for user ${user.username} failed: ${messageOf(err)}` }
    }
    return { kind: 'rejected', status: 403, message: `Authorization denied for user ${user.username}` }
  }

  /** Sends a TokenReview unless its result is cached. Returns `undefined` for an invalid token. */
  async #authenticate(token: string): Promise<User | undefined> {
    const key = createHash('sha256').update(token).digest('base64')
    const cached = this.#users.get(key)
    if (cached && cached.until > this.#clock.elapsed()) return cached.user
    const { status } = await this.#client.create(TokenReview, { metadata: {}, spec: { token } })
    const user = status?.authenticated && status.user?.username ? (status.user as User) : undefined
    putBounded(this.#users, key, { user, until: this.#clock.elapsed() + (user ? Lifetimes.user : Lifetimes.rejected) })
    return user
  }

  /** Sends a SubjectAccessReview unless its result is cached. Returns whether the user is allowed. */
  async #authorize({ username, uid, groups, extra }: User, verb: string, path: string): Promise<boolean> {
    const key = JSON.stringify([username, uid, groups, extra, verb, path])
    const cached = this.#decisions.get(key)
    if (cached && cached.until > this.#clock.elapsed()) return cached.isAllowed
    const { status } = await this.#client.create(SubjectAccessReview, {
      metadata: {},
      spec: {
        user: username,
        ...(uid === undefined ? {} : { uid }),
        ...(groups === undefined ? {} : { groups: [...groups] }),
        ...(extra === undefined ? {} : { extra }),
        nonResourceAttributes: { path, verb },
      },
    })
    const isAllowed = status?.allowed === true
    putBounded(this.#decisions, key, {
      isAllowed,
      until: this.#clock.elapsed() + (isAllowed ? Lifetimes.allowed : Lifetimes.rejected),
    })
    return isAllowed
  }
}

function putBounded<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > MaxCached) map.delete(map.keys().next().value!)
}
