import { createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import {
  createClient,
  minutes,
  Namespace,
  Node,
  Pod,
  Secret,
  ServiceAccount,
  seededRandom,
  type StatusError,
  type TokenRequest,
  VirtualClock,
} from '@capstan/kube'
import { afterEach, expect, test } from 'vitest'
import { createHandler, webHandler } from '@capstan/apiserver'
import { type ApiServerOptions, createApiServer } from '../server.ts'
import { rejection, type TestServer } from '../test-server.ts'
import { makeSigningKey } from './service-account-tokens.ts'

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()))
})

const namespace = 'default'
const robot = { name: 'robot', namespace }

async function start(options: Partial<ApiServerOptions> = {}): Promise<TestServer> {
  const clock = new VirtualClock()
  const server = createApiServer({ clock, random: seededRandom(1), ...options })
  stops.push(() => server.close())
  await server.ready
  const client = createClient(server.transport())
  await client.create(ServiceAccount, { metadata: robot })
  return { server, client, clock }
}

const request = ({ client }: TestServer, spec: object = {}, name = 'robot') =>
  client.transport.send({
    verb: 'create',
    group: '',
    version: 'v1',
    plural: 'serviceaccounts',
    namespace,
    name,
    subresource: 'token',
    body: { kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1', spec },
  }) as Promise<TokenRequest>

const tokenOf = async (t: TestServer, spec?: object) => (await request(t, spec)).status!.token
const authenticateToken = ({ server }: TestServer, token: string) => server.authenticate({ authorization: `Bearer ${token}` })
const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>

test('a token contains its service account, audiences and expiry, and authenticates the service account', async () => {
  const t = await start()
  const { uid } = (await t.client.get(ServiceAccount, robot)).metadata
  const { metadata, spec, status } = await request(t)
  const claims = claimsOf(status!.token)
  const now = t.clock.now() / 1000
  expect(metadata).toMatchObject(robot)
  expect(spec).toMatchObject({ audiences: ['https://kubernetes.default.svc.cluster.local'], expirationSeconds: 3600 })
  expect(Date.parse(status!.expirationTimestamp) / 1000).toBe(claims.exp)
  expect(claims).toEqual({
    aud: ['https://kubernetes.default.svc.cluster.local'],
    exp: now + 3600,
    iat: now,
    iss: 'https://kubernetes.default.svc.cluster.local',
    jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
    'kubernetes.io': { namespace, serviceaccount: { name: 'robot', uid } },
    nbf: now,
    sub: 'system:serviceaccount:default:robot',
  })
  expect(authenticateToken(t, status!.token)).toEqual({
    kind: 'user',
    name: 'system:serviceaccount:default:robot',
    uid,
    groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
    extra: { 'authentication.kubernetes.io/credential-id': [`JTI=${claims.jti as string}`] },
  })
})

const rejected = { kind: 'rejected' }

test('a token is rejected when more than a minute has passed since its expiry', async () => {
  const t = await start()
  const token = await tokenOf(t, { expirationSeconds: 600 })
  // Upstream tolerates clocks that differ by a minute.
  t.clock.step(t.clock.now() + minutes(11))
  expect(authenticateToken(t, token)).toMatchObject({ kind: 'user' })
  t.clock.step(t.clock.now() + 1)
  expect(authenticateToken(t, token)).toEqual(rejected)
})

test.each<[string, object]>([
  ['issued more than a minute in the future', { iat: 61 }],
  ['that becomes valid in more than a minute', { nbf: 61 }],
  ['that expired more than a minute ago', { exp: -61 }],
  ['with an expiry beyond int64', { exp: 1e300 }],
  ['with a subject that is a number', { sub: 1 }],
  ['with an id that is a number', { jti: 1 }],
  ['with a string as a date', { nbf: '1' }],
  ['with an audience that is a number', { aud: ['https://kubernetes.default.svc.cluster.local', 1] }],
  ['without a service account', { 'kubernetes.io': { namespace } }],
  ['without a namespace', { 'kubernetes.io': { serviceaccount: { name: 'robot' } } }],
])('a token %s is rejected', async (_, changedClaims) => {
  const t = await start({ serviceAccountTokens: { signingKey } })
  expect(authenticateToken(t, signedAgain(t, await tokenOf(t), changedClaims))).toEqual(rejected)
})

test.each<[string, object]>([
  ['issued a minute in the future', { iat: 60 }],
  ['that becomes valid in a minute', { nbf: 60 }],
  ['that expired a minute ago', { exp: -60 }],
  ['without an expiry', { exp: undefined }],
  ['without an audience', { aud: undefined }],
])('a token %s is accepted', async (_, changedClaims) => {
  const t = await start({ serviceAccountTokens: { signingKey } })
  expect(authenticateToken(t, signedAgain(t, await tokenOf(t), changedClaims))).toMatchObject({ kind: 'user' })
})

test.each([0, 1, 2])('a token with padding in part %d is rejected', async (part) => {
  const t = await start()
  const parts = (await tokenOf(t)).split('.')
  parts[part] += '=='
  expect(authenticateToken(t, parts.join('.'))).toEqual(rejected)
})

/** Returns the token with changed claims, signed by the same key. Dates between -100 and 100 are seconds from now. */
function signedAgain({ clock }: TestServer, token: string, changedClaims: object): string {
  const [head = ''] = token.split('.')
  const now = clock.now() / 1000
  const claims = Object.entries(changedClaims).map(([name, value]) => [
    name,
    ['iat', 'nbf', 'exp'].includes(name) && Math.abs(value as number) < 100 && typeof value === 'number' ? now + value : value,
  ])
  const body = JSON.stringify({ ...claimsOf(token), ...Object.fromEntries(claims) })
  const input = `${head}.${Buffer.from(body).toString('base64url')}`
  const signature = sign('sha256', Buffer.from(input), { key: signingKey, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}
const signingKey = makeSigningKey()

test('a token is invalid after its service account is deleted, also when a new service account has the same name', async () => {
  const t = await start()
  const token = await tokenOf(t)
  await t.client.delete(ServiceAccount, robot)
  expect(authenticateToken(t, token)).toEqual(rejected)
  await t.client.create(ServiceAccount, { metadata: robot })
  expect(authenticateToken(t, token)).toEqual(rejected)
})

test('a token that is bound to a pod names the pod, and is invalid after the pod is deleted', async () => {
  const t = await start()
  const pod = await t.client.create(Pod, {
    metadata: { name: 'p', namespace },
    spec: { serviceAccountName: 'robot', containers: [{ name: 'c', image: 'i' }] },
  } as never)
  const token = await tokenOf(t, { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p' } })
  expect(authenticateToken(t, token)).toMatchObject({
    extra: {
      'authentication.kubernetes.io/pod-name': ['p'],
      'authentication.kubernetes.io/pod-uid': [pod.metadata.uid],
    },
  })
  await t.client.delete(Pod, pod.metadata)
  expect(authenticateToken(t, token)).toEqual(rejected)
})

test.each([
  ['Secret', Secret, namespace],
  ['Node', Node, undefined],
] as const)(
  'a token that is bound to a %s is invalid after that object is deleted, also when it is created again',
  async (kind, type, objectNamespace) => {
    const t = await start()
    const namespaceOfBound = objectNamespace === undefined ? {} : { namespace: objectNamespace }
    const make = () => t.client.create(type as typeof Secret, { metadata: { name: 'b', ...namespaceOfBound } } as never)
    const { metadata } = await make()
    const token = await tokenOf(t, { boundObjectRef: { kind, apiVersion: 'v1', name: 'b', uid: metadata.uid } })
    expect(claimsOf(token)['kubernetes.io']).toMatchObject({ [kind.toLowerCase()]: { name: 'b', uid: metadata.uid } })
    const identity = authenticateToken(t, token)
    expect(identity).toMatchObject({ kind: 'user' })
    const extra = (identity as { extra: { [name: string]: readonly string[] } }).extra
    expect(extra['authentication.kubernetes.io/node-name']).toEqual(kind === 'Node' ? ['b'] : undefined)
    await t.client.delete(type as typeof Secret, metadata as never)
    expect(authenticateToken(t, token)).toEqual(rejected)
    await make()
    expect(authenticateToken(t, token)).toEqual(rejected)
  },
)

const withChangedClaims = (token: string, change: (claims: Record<string, unknown>) => void, header?: object) => {
  const [head, , signature] = token.split('.')
  const claims = claimsOf(token)
  change(claims)
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${header ? encode(header) : head}.${encode(claims)}.${signature}`
}

test('a modified or malformed token is rejected', async () => {
  const t = await start()
  const token = await tokenOf(t)
  const [head, body, signature] = token.split('.') as [string, string, string]
  for (const forged of [
    withChangedClaims(token, (claims) => (claims.exp = 9e9)),
    withChangedClaims(token, () => {}, { alg: 'none' }),
    withChangedClaims(token, () => {}, { alg: 'HS256' }),
    `${head}.${body}.`,
    `${head}.${body}.${signature.slice(0, -4)}AAAA`,
    `${head}.${body}`,
    `${token}.x`,
    'a.b.c',
  ]) {
    expect(authenticateToken(t, forged), forged).toEqual(rejected)
  }
})

test('a token for other audiences is rejected, except in a TokenReview for one of them', async () => {
  const t = await start()
  const token = await tokenOf(t, { audiences: ['vault'] })
  expect(authenticateToken(t, token)).toEqual(rejected)
  const review = (audiences: string[]) =>
    t.client.transport.send({
      verb: 'create',
      group: 'authentication.k8s.io',
      version: 'v1',
      plural: 'tokenreviews',
      body: { spec: { token, audiences } },
    })
  expect(await review(['vault', 'other'])).toMatchObject({
    status: { authenticated: true, audiences: ['vault'], user: { username: 'system:serviceaccount:default:robot' } },
  })
  expect(await review(['other'])).toMatchObject({
    status: { error: '[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["other"]]' },
  })
})

test('an empty token request is accepted', async () => {
  const { client } = await start()
  const path = { group: '', version: 'v1', plural: 'serviceaccounts', namespace, name: 'robot', subresource: 'token' }
  const response = await client.transport.send({ verb: 'create', ...path, body: {} })
  expect(response).toMatchObject({
    kind: 'TokenRequest',
    spec: { expirationSeconds: 3600 },
    status: { token: expect.any(String) },
  })
})

test.each<[string, object, string, string]>([
  [
    'would be valid for less than 10 minutes',
    { expirationSeconds: 599 },
    'robot',
    'Invalid: TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
  ],
  ['is for a missing service account', {}, 'ghost', 'NotFound: serviceaccounts "ghost" not found'],
  [
    'is bound to a missing object',
    { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p' } },
    'robot',
    'NotFound: pods "p" not found',
  ],
  [
    'is bound to an unsupported kind',
    { boundObjectRef: { kind: 'ConfigMap', apiVersion: 'v1', name: 'p' } },
    'robot',
    'BadRequest: cannot bind token to object of type /v1, Kind=ConfigMap',
  ],
])('a token that %s is not issued', async (_, spec, name, expectedError) => {
  const t = await start()
  const err = (await request(t, spec, name).catch((thrown: unknown) => thrown)) as StatusError
  expect(`${err.reason}: ${err.message}`).toBe(expectedError)
})

test.each([
  ['EC P-256', makeSigningKey()],
  ['RSA', generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'pem', type: 'pkcs1' }).toString()],
  ['EC P-384', generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({ format: 'pem', type: 'sec1' }).toString()],
])('a token signed by a key of type %s is accepted only by a server with that key and issuer', async (_, signingKey) => {
  const issuers = ['https://issuer.example.com']
  const first = await start({ serviceAccountTokens: { issuers, signingKey } })
  const token = await tokenOf(first)
  const store = first.server.store
  const verificationKeys = [createPublicKey(signingKey).export({ format: 'pem', type: 'spki' }).toString()]
  const serverWith = (serviceAccountTokens: NonNullable<ApiServerOptions['serviceAccountTokens']>) =>
    createApiServer({ clock: first.clock, random: seededRandom(2), store, serviceAccountTokens }).authenticate({
      authorization: `Bearer ${token}`,
    })
  expect(serverWith({ issuers, verificationKeys })).toMatchObject({ kind: 'user', name: 'system:serviceaccount:default:robot' })
  expect(serverWith({ issuers })).toEqual(rejected)
  expect(serverWith({ issuers: ['https://other.example.com'], verificationKeys })).toEqual(rejected)
})

test('the server publishes its issuer and keys for other verifiers', async () => {
  const t = await start()
  const { server, clock } = t
  const handle = webHandler(createHandler({ engine: server.engine, clock, issuer: server.issuer }))
  const get = (path: string) =>
    handle(new Request(`https://server${path}`, { headers: { host: 'server:6443' } }), { kind: 'user', name: 'x', groups: [] })
  const configuration = await get('/.well-known/openid-configuration')
  expect(await configuration.json()).toEqual({
    issuer: 'https://kubernetes.default.svc.cluster.local',
    jwks_uri: 'https://server:6443/openid/v1/jwks',
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  })
  const response = await get('/openid/v1/jwks')
  expect(response.headers.get('content-type')).toBe('application/jwk-set+json')
  const { keys } = (await response.json()) as { keys: [{ kid: string }] }
  expect(keys).toEqual([
    { use: 'sig', kty: 'EC', kid: expect.any(String), alg: 'ES256', crv: 'P-256', x: expect.any(String), y: expect.any(String) },
  ])
  const [head, body, signature] = (await tokenOf(t)).split('.') as [string, string, string]
  expect((JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string }).kid).toBe(keys[0].kid)
  const key = createPublicKey({ key: keys[0] as never, format: 'jwk' })
  const signed = Buffer.from(`${head}.${body}`)
  expect(verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))).toBe(true)
})

test('unusable keys are rejected at start with errors that do not contain the keys', () => {
  const create = (serviceAccountTokens: ApiServerOptions['serviceAccountTokens']) => () =>
    createApiServer({ clock: new VirtualClock(), random: seededRandom(1), serviceAccountTokens: serviceAccountTokens! })
  const ed25519 = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
  expect(create({ signingKey: ed25519 })).toThrow(
    /^Cannot use a key of type ed25519 for service account tokens: expected RSA or EC P-256, P-384 or P-521$/,
  )
  expect(create({ verificationKeys: ['secret'] })).toThrow(/^Cannot read a key for service account tokens: expected PEM$/)
})

test('a new namespace gets the ServiceAccount default and the ConfigMap kube-root-ca.crt, and the ServiceAccount is created again after its deletion', async () => {
  const { client } = await start({ controllers: { serviceAccounts: true, rootCA: 'PEM' } })
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  await client.create(Namespace, { metadata: { name: 'new' } })
  await settled()
  const accountAndCA = async () => {
    const [accounts, configMaps] = await Promise.all([
      client.list(ServiceAccount, { namespace: 'new' }),
      client.list({ ...ServiceAccount, kind: 'ConfigMap', plural: 'configmaps' }, { namespace: 'new' }),
    ])
    return [...accounts.items, ...configMaps.items].map(({ metadata }) => metadata.name)
  }
  expect(await accountAndCA()).toEqual(['default', 'kube-root-ca.crt'])
  await client.delete(ServiceAccount, { name: 'default', namespace: 'new' })
  await settled()
  expect(await accountAndCA()).toEqual(['default', 'kube-root-ca.crt'])
})

test('maxExpirationSeconds limits the requested lifetime of a token', async () => {
  const limited = await start({ serviceAccountTokens: { maxExpirationSeconds: 3600 } })
  const { spec, status } = await request(limited, { expirationSeconds: 7200 })
  expect([spec.expirationSeconds, claimsOf(status!.token).exp]).toEqual([3600, limited.clock.now() / 1000 + 3600])
})

test('a pod token with the lifetime that kubelets request by default, 3607 seconds, is valid for a year, unless extendExpiration is false', async () => {
  const pod = {
    metadata: { name: 'p', namespace },
    spec: { serviceAccountName: 'robot', containers: [{ name: 'c', image: 'i' }] },
  }
  const podTokenSpec = { expirationSeconds: 3607, boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p' } }
  for (const [options, lifetimeSeconds] of [
    [{}, 365 * 24 * 3600],
    [{ extendExpiration: false }, 3607],
  ] as const) {
    const t = await start({ serviceAccountTokens: options })
    await t.client.create(Pod, pod as never)
    const response = await request(t, podTokenSpec)
    const now = t.clock.now() / 1000
    expect(Date.parse(response.status!.expirationTimestamp) / 1000).toBe(now + 3607)
    const claims = claimsOf(response.status!.token)
    expect(claims.exp).toBe(now + lifetimeSeconds)
    expect((claims['kubernetes.io'] as { warnafter?: number }).warnafter).toBe(lifetimeSeconds > 3607 ? now + 3607 : undefined)
  }
})

test('a token request whose metadata has another name or uid than the service account in its path is rejected', async () => {
  const t = await start()
  const { uid } = (await t.client.get(ServiceAccount, robot)).metadata
  const requestToken = (metadata: object) =>
    rejection(
      t.client.transport.send({
        verb: 'create',
        group: '',
        version: 'v1',
        plural: 'serviceaccounts',
        namespace,
        name: 'robot',
        subresource: 'token',
        body: { metadata, spec: {} },
      }),
    )
  expect(await requestToken({ name: 'x' })).toBe(
    '422 Invalid: TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "x": must match the service account name if specified',
  )
  expect(await requestToken({ uid: 'x' })).toBe(
    `409 Conflict: Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "robot": the UID in the token request (x) does not match the UID of the service account (${uid})`,
  )
})
