/**
 * Service account tokens: JSON Web Tokens that the server signs, and accepts until they expire or an object that they are bound to is
 * deleted. Upstream: pkg/serviceaccount, v1.36.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
  timingSafeEqual,
  verify as verifyBytes,
} from 'node:crypto'
import {
  type Clock,
  isRecord,
  jsonTypeName,
  type KubeObject,
  messageOf,
  notFound,
  type Random,
  randomUUID,
  type Secret,
  seconds,
  type ServiceAccount,
} from '@capstan/kube'
import {
  type User,
  type Store,
  credentialID,
  serviceAccountGroups,
  serviceAccountUser,
  type AuthenticateToken,
  type TokenIssuer,
  type TokenResult,
  withAuthenticated,
} from '@capstan/apiserver/kinds'

export interface ServiceAccountTokenOptions {
  /**
   * Issuers whose tokens are accepted; new tokens name the first issuer. Default: https://kubernetes.default.svc.cluster.local.
   * Tokens in Secrets have a fixed issuer instead.
   */
  readonly issuers?: readonly string[]
  /** EC or RSA private key, PEM. Default: generated when first needed, and lost with the process. */
  readonly signingKey?: string
  /** Further keys or certificates that verify tokens, PEM; a text may contain several. */
  readonly verificationKeys?: readonly string[]
  /**
   * Audiences of this server: it accepts tokens for any of them, and issues tokens for all of them when a request names no audiences. Default:
   * the issuers. Upstream: --api-audiences.
   */
  readonly audiences?: readonly string[]
  /**
   * Maximum lifetime in seconds: a token request for a longer lifetime gets this lifetime. Default: the limit of the API, 2^32
   * seconds. Does not limit the year of `extendExpiration`.
   */
  readonly maxExpirationSeconds?: number
  /**
   * Whether a token is valid for a year if it is bound to a pod, its requested lifetime is the default of pods (3607 seconds), and it has
   * only audiences of this server. The response still contains the requested expiration, so that pods renew their tokens within the hour.
   * Default: true.
   * Upstream: --service-account-extend-token-expiration.
   */
  readonly extendExpiration?: boolean
  /** URL of the published keys, if another server publishes them. Default: `/openid/v1/jwks` of this server. */
  readonly jwksUri?: string
}

/** Object that a token is bound to besides its service account: the token becomes invalid when the object is deleted. */
export interface BoundObject {
  readonly kind: 'Pod' | 'Secret' | 'Node'
  readonly name: string
  readonly uid: string
}

/** Contents of a new token. */
export interface TokenContents {
  readonly audiences: readonly string[]
  readonly expirationSeconds: number
  /** Age in seconds after which the token should have been renewed; absent: the token has no claim `warnafter`. */
  readonly warnAfterSeconds?: number | undefined
  readonly bound?: BoundObject | undefined
  /** The node of a bound pod. */
  readonly node?: { readonly name: string; readonly uid?: string } | undefined
}

export interface ServiceAccountTokens extends TokenIssuer {
  readonly audiences: readonly string[]
  readonly maxExpirationSeconds: number | undefined
  readonly extendExpiration: boolean
  readonly authenticate: AuthenticateToken
  issue(account: ServiceAccount, contents: TokenContents): string
  /** Issues a token without expiry, which is valid as long as the service account and the Secret that contains the token exist. */
  issueForSecret(account: ServiceAccount, secret: string): string
}

/** Default issuer of most Kubernetes distributions. */
const usualIssuer = 'https://kubernetes.default.svc.cluster.local'

/** Creates the issuer and verifier of tokens. @throws Error when a key cannot be read, or its type is not supported */
export function serviceAccountTokens(
  { store, clock, random }: { store: Store; clock: Clock; random: Random },
  options: ServiceAccountTokenOptions = {},
): ServiceAccountTokens {
  const issuers = options.issuers?.length ? options.issuers : [usualIssuer]
  const audiences = options.audiences?.length ? options.audiences : issuers
  const signingKey = options.signingKey === undefined ? undefined : createPrivateKey(options.signingKey)
  const furtherKeys = (options.verificationKeys ?? []).flatMap(publicKeys)
  if (signingKey) keyOf(createPublicKey(signingKey))
  for (const key of furtherKeys) keyOf(key)

  let keyringCache: { readonly signing: KeyObject; readonly keys: readonly Key[] } | undefined
  const keyring = () => {
    if (keyringCache) return keyringCache
    const signing = signingKey ?? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    const keys = new Map([createPublicKey(signing), ...furtherKeys].map((key) => [keyOf(key).id, keyOf(key)]))
    return (keyringCache = { signing, keys: [...keys.values()] })
  }

  return {
    audiences,
    maxExpirationSeconds: options.maxExpirationSeconds,
    extendExpiration: options.extendExpiration ?? true,
    issue(account, { audiences: intended, expirationSeconds, warnAfterSeconds, bound, node }) {
      const { signing, keys } = keyring()
      const { name, namespace = '', uid } = account.metadata
      const now = Math.floor(clock.now() / 1000)
      const reference = bound && { [bound.kind.toLowerCase()]: { name: bound.name, uid: bound.uid } }
      const claims = {
        aud: intended,
        exp: now + expirationSeconds,
        iat: now,
        iss: issuers[0],
        jti: randomUUID(random),
        'kubernetes.io': {
          namespace,
          ...(node ? { node } : {}),
          ...reference,
          serviceaccount: { name, uid },
          ...(warnAfterSeconds === undefined ? {} : { warnafter: now + warnAfterSeconds }),
        },
        nbf: now,
        sub: serviceAccountUser(namespace, name),
      }
      return signToken(signing, keys[0]!, claims)
    },
    issueForSecret({ metadata: { name, namespace = '', uid } }, secret) {
      const { signing, keys } = keyring()
      return signToken(signing, keys[0]!, {
        iss: SecretIssuer,
        [`${SecretClaims}/namespace`]: namespace,
        [`${SecretClaims}/secret.name`]: secret,
        [`${SecretClaims}/service-account.name`]: name,
        [`${SecretClaims}/service-account.uid`]: uid,
        sub: serviceAccountUser(namespace, name),
      })
    },
    authenticate(token, requestedAudiences) {
      const parsed = parse(token)
      if (parsed?.claims.iss === SecretIssuer)
        return verifySecretToken(token, parsed, { requestedAudiences, audiences, keys: keyring().keys, store })
      if (!parsed || !issuers.includes(String(parsed.claims.iss))) return { kind: 'unknown' }
      return verifyBoundToken(parsed, requestedAudiences, keyring().keys, { store, clock, audiences })
    },
    jwks: () => ({ keys: keyring().keys.map(({ id, algorithm, key }) => jwkOf(id, algorithm, key)) }),
    configuration(server) {
      if (!issuers[0]!.startsWith('https://')) return undefined
      return {
        issuer: issuers[0],
        jwks_uri: options.jwksUri ?? `${server}/openid/v1/jwks`,
        response_types_supported: ['id_token'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: [...new Set(keyring().keys.map(({ algorithm }) => algorithm.name))].sort(),
      }
    },
  }
}

/** Generates a signing key, PEM. It is a secret. */
export const makeSigningKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()

/** Issuer of tokens in Secrets, and prefix of the claims that only these tokens have. */
const SecretIssuer = 'kubernetes/serviceaccount'
const SecretClaims = 'kubernetes.io/serviceaccount'

// Keys

interface Algorithm {
  readonly name: 'RS256' | 'ES256' | 'ES384' | 'ES512'
  readonly hash: 'sha256' | 'sha384' | 'sha512'
}

interface Key {
  readonly id: string
  readonly key: KeyObject
  readonly algorithm: Algorithm
}

const curves: { readonly [curve: string]: Algorithm } = {
  prime256v1: { name: 'ES256', hash: 'sha256' },
  secp384r1: { name: 'ES384', hash: 'sha384' },
  secp521r1: { name: 'ES512', hash: 'sha512' },
}

function keyOf(key: KeyObject): Key {
  const algorithm: Algorithm | undefined =
    key.asymmetricKeyType === 'rsa' ? { name: 'RS256', hash: 'sha256' } : curves[key.asymmetricKeyDetails?.namedCurve ?? '']
  if (!algorithm) {
    throw new Error(
      `Cannot use a key of type ${key.asymmetricKeyType} for service account tokens: expected RSA or EC P-256, P-384 or P-521`,
    )
  }
  const id = createHash('sha256')
    .update(key.export({ format: 'der', type: 'spki' }))
    .digest('base64url')
  return { id, key, algorithm }
}

/** Parses public keys, private keys and certificates that follow one another in a text. */
function publicKeys(text: string): KeyObject[] {
  const blocks = text.match(/-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g) ?? []
  // Files that OpenSSL writes may contain the curve of the key before the key.
  const keys = blocks.filter((block) => !block.startsWith('-----BEGIN EC PARAMETERS'))
  if (keys.length === 0) throw new Error('Cannot read a key for service account tokens: expected PEM')
  return keys.map((block) => {
    try {
      return createPublicKey(block)
    } catch (err) {
      throw new Error(`Cannot read a key for service account tokens: ${messageOf(err)}`)
    }
  })
}

function jwkOf(kid: string, { name: alg }: Algorithm, key: KeyObject): object {
  const { kty, ...parts } = key.export({ format: 'jwk' })
  return { use: 'sig', kty, kid, alg, ...parts }
}

// Tokens

interface Parsed {
  readonly header: { readonly [name: string]: unknown }
  readonly claims: { readonly [name: string]: unknown }
  /** Text that the signature covers: the encoded header and claims. */
  readonly input: string
  readonly signature: Buffer
}

const encodePart = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function signToken(signing: KeyObject, { id, algorithm }: Key, claims: object): string {
  const input = `${encodePart({ alg: algorithm.name, kid: id })}.${encodePart(claims)}`
  const signature = signBytes(algorithm.hash, Buffer.from(input), { key: signing, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

/** Maximum length of a token in characters; longer tokens are not parsed. */
const MaxLength = 16 * 1024

function parse(token: string): Parsed | undefined {
  const [head, body, signature, ...extraParts] = token.split('.')
  if (head === undefined || body === undefined || signature === undefined || extraParts.length > 0) return undefined
  if (token.length > MaxLength) return undefined
  // Node's decoder ignores characters that Go's decoder rejects, such as padding.
  if (![head, body, signature].every((part) => /^[\w-]*$/.test(part))) return undefined
  const read = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString())
  try {
    const [header, claims] = [read(head), read(body)]
    if (!isRecord(header) || !isRecord(claims)) return undefined
    return { header, claims, input: `${head}.${body}`, signature: Buffer.from(signature, 'base64url') }
  } catch {
    return undefined
  }
}

/** Reports whether this key signed the token. The key determines the algorithm: a token that names another algorithm is not accepted. */
const isSignedBy = ({ header, input, signature }: Parsed, { id, key, algorithm }: Key): boolean =>
  header.alg === algorithm.name &&
  (header.kid === undefined || header.kid === id) &&
  verifyBytes(algorithm.hash, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }, signature)

interface SecretTokenContext {
  readonly requestedAudiences: readonly string[]
  /** Audiences of this server, which apply to tokens in Secrets, because those tokens contain no audiences. */
  readonly audiences: readonly string[]
  readonly keys: readonly Key[]
  readonly store: Store
}

/** Verifies a token without expiry, which must be the token that its Secret contains. Upstream: pkg/serviceaccount/legacy.go. */
function verifySecretToken(
  token: string,
  parsed: Parsed,
  { requestedAudiences, audiences, keys, store }: SecretTokenContext,
): TokenResult {
  const reject = (reason: string): TokenResult => ({ kind: 'rejected', reason })
  if (!keys.some((key) => isSignedBy(parsed, key))) return reject('invalid signature')
  const malformed = malformedClaim(parsed.claims)
  if (malformed !== undefined) return reject(malformed)
  const claim = (name: string) => {
    const value = parsed.claims[`${SecretClaims}/${name}`]
    return typeof value === 'string' ? value : ''
  }
  const [namespace, name, uid] = [claim('namespace'), claim('service-account.name'), claim('service-account.uid')]
  const secret = lookUp(store, 'secrets', namespace, claim('secret.name')) as Secret | undefined
  if (!secret || secret.metadata.deletionTimestamp !== undefined) return reject('Token has been invalidated')
  const storedToken = Buffer.from(secret.data?.token ?? '', 'base64')
  const presented = Buffer.from(token)
  if (storedToken.length !== presented.length || !timingSafeEqual(storedToken, presented))
    return reject("Token does not match server's copy")
  const account = lookUp(store, 'serviceaccounts', namespace, name)
  if (!account) return reject(notFound({ group: '', plural: 'serviceaccounts' }, name).message)
  if (account.metadata.deletionTimestamp !== undefined) return reject(`ServiceAccount ${namespace}/${name} has been deleted`)
  if (account.metadata.uid !== uid) return reject(`ServiceAccount UID (${account.metadata.uid}) does not match claim (${uid})`)
  const shared = audiences.filter((audience) => requestedAudiences.includes(audience))
  if (shared.length === 0) return reject(audienceError(audiences, requestedAudiences))
  const user = withAuthenticated({ name: serviceAccountUser(namespace, name), uid, groups: serviceAccountGroups(namespace) })
  return { kind: 'known', user, audiences: shared }
}

function audienceError(intended: readonly string[], requestedAudiences: readonly string[]): string {
  const list = (texts: readonly string[]) => `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`
  return `token audiences ${list(intended)} is invalid for the target audiences ${list(requestedAudiences)}`
}

interface TokenContext {
  readonly store: Store
  /** Audiences of this server. */
  readonly audiences: readonly string[]
  readonly clock: Clock
}

function verifyBoundToken(
  token: Parsed,
  requestedAudiences: readonly string[],
  keys: readonly Key[],
  context: TokenContext,
): TokenResult {
  const reject = (reason: string): TokenResult => ({ kind: 'rejected', reason })
  if (!keys.some((key) => isSignedBy(token, key))) return reject('invalid signature')
  const { claims } = token
  const malformed = malformedClaim(claims)
  if (malformed !== undefined) return reject(malformed)
  const claimedAudiences = [claims.aud ?? []].flat() as string[]
  // A token without audiences is for this server.
  const intended = claimedAudiences.length === 0 ? context.audiences : claimedAudiences
  const audiences = intended.filter((audience) => requestedAudiences.includes(audience))
  if (audiences.length === 0) return reject(audienceError(intended, requestedAudiences))
  const now = context.clock.now()
  const [notBefore, expiry, issuedAt] = [claims.nbf, claims.exp, claims.iat].map(dateOf)
  if (notBefore !== undefined && now + Leeway < notBefore) return reject('service account token is not valid yet')
  if (expiry !== undefined && now - Leeway > expiry) return reject('service account token has expired')
  if (issuedAt !== undefined && now + Leeway < issuedAt) return reject('service account token is issued in the future')
  const userOrError = userOf(claims, context)
  return typeof userOrError === 'string' ? reject(userOrError) : { kind: 'known', user: userOrError, audiences }
}

/** Maximum difference between the clocks of servers. Upstream: jwt.DefaultLeeway of go-jose. */
const Leeway = seconds(60)

/** Returns upstream's error text for a claim that cannot be decoded. Upstream: jwt.Claims of go-jose v2. */
function malformedClaim(claims: Parsed['claims']): string | undefined {
  for (const name of ['iss', 'sub', 'jti']) {
    const value = claims[name] ?? ''
    if (typeof value !== 'string') return `json: cannot unmarshal ${jsonTypeName(value)} into Go value of type string`
  }
  const { aud } = claims
  if (aud !== undefined && ![aud].flat().every((audience) => typeof audience === 'string'))
    return 'go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience'
  for (const name of ['exp', 'nbf', 'iat']) {
    const value = claims[name] ?? 0
    if (typeof value !== 'number') return 'go-jose/go-jose/jwt: expected number value to unmarshal NumericDate'
  }
  return undefined
}

/** Returns a date in milliseconds. Upstream: Go converts a number outside of int64 to the lowest int64. */
function dateOf(claim: unknown): number | undefined {
  if (typeof claim !== 'number') return undefined
  return Math.abs(claim) < 2 ** 63 ? seconds(Math.trunc(claim)) : Number.NEGATIVE_INFINITY
}

interface Reference {
  readonly name: string
  readonly uid: string | undefined
}

function referenceOf(value: unknown): Reference | undefined {
  if (!isRecord(value) || typeof value.name !== 'string') return undefined
  return { name: value.name, uid: typeof value.uid === 'string' ? value.uid : undefined }
}

/** Returns the user of a token, or an error text. */
function userOf({ 'kubernetes.io': claim, jti }: Parsed['claims'], context: TokenContext): User | string {
  const { namespace, ...references } = isRecord(claim) ? claim : {}
  const account = referenceOf(references.serviceaccount)
  if (typeof namespace !== 'string' || !account) return 'service account token has no claims about its service account'
  const storedAccount = lookUp(context.store, 'serviceaccounts', namespace, account.name)
  if (!storedAccount) return notFound({ group: '', plural: 'serviceaccounts' }, account.name).message
  if (storedAccount.metadata.uid !== account.uid)
    return `service account UID (${storedAccount.metadata.uid}) does not match claim (${account.uid})`
  if (isInvalidated(storedAccount, context.clock)) return 'service account token has been invalidated'

  const extra: { [key: string]: string[] } = {}
  if (typeof jti === 'string') extra[credentialID] = [`JTI=${jti}`]
  for (const kind of ['secret', 'pod', 'node'] as const) {
    const reference = referenceOf(references[kind])
    if (!reference) continue
    // A token that is bound to a pod also names the node of the pod. It stays valid when the node is deleted.
    const isOfPod = kind === 'node' && references.pod !== undefined
    const bound = isOfPod ? undefined : lookUp(context.store, `${kind}s`, kind === 'node' ? '' : namespace, reference.name)
    if (!isOfPod && (!bound || isInvalidated(bound, context.clock))) return 'service account token has been invalidated'
    if (bound && bound.metadata.uid !== reference.uid)
      return `${kind} UID (${bound.metadata.uid}) does not match service account ${kind} ref claim (${reference.uid})`
    if (kind === 'secret') continue
    extra[`authentication.kubernetes.io/${kind}-name`] = [reference.name]
    if (reference.uid !== undefined) extra[`authentication.kubernetes.io/${kind}-uid`] = [reference.uid]
  }
  return withAuthenticated({
    name: serviceAccountUser(namespace, account.name),
    uid: account.uid ?? '',
    groups: serviceAccountGroups(namespace),
    extra,
  })
}

const lookUp = (store: Store, resource: string, namespace: string, name: string): KubeObject | undefined =>
  store.get({ resource, namespace, name })

/**
 * Reports whether the tokens that are bound to an object are invalid. Tokens stay valid until a minute after the deletionTimestamp of the
 * object, so that the clean-up of the object can use them.
 */
const isInvalidated = ({ metadata: { deletionTimestamp } }: KubeObject, clock: Clock): boolean =>
  deletionTimestamp !== undefined && Date.parse(deletionTimestamp) < clock.now() - seconds(60)
