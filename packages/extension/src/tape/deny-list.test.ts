/**
 * Tests redaction with canaries, which are planted secrets: in every string and every object of a request and a response of each hook, and
 * in the forms that the deny list must redact (docs/reference/tapes.md).
 */
import { hookCatalog } from '@capstan/api'
import { draft, isRecord, type Json } from '@capstan/kube'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { fixture } from '../test-kit/fixtures.ts'
import { redact, redactText } from './deny-list.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const pem = (secret: string, kind = 'RSA '): string =>
  `-----BEGIN ${kind}PRIVATE KEY-----\nMIIB\n${secret}\n-----END ${kind}PRIVATE KEY-----`
const kubeconfigOf = (secret: string): string =>
  `apiVersion: v1\nkind: Config\nclusters: []\nusers:\n- name: admin\n  user: {token: ${secret}}\n`
const secretOf = (secret: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' }, data: { any: secret } })

/** Forms of a secret in a string. */
const texts: { readonly [form: string]: (secret: string) => string } = {
  'a private key': (secret) => pem(secret),
  'a private key with text around it': (secret) => `before ${pem(secret, 'OPENSSH ')} after`,
  'an encrypted private key that is cut off': (secret) => `-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB${secret}`,
  'a private key of PGP': (secret) => `-----BEGIN PGP PRIVATE KEY BLOCK-----\n${secret}\n-----END PGP PRIVATE KEY BLOCK-----`,
  'a private key whose lines are written as \\n': (secret) => JSON.stringify(pem(secret)),
  'a kubeconfig': kubeconfigOf,
  'a kubeconfig in JSON': (secret) => JSON.stringify({ kind: 'Config', users: [{ name: secret, user: { exec: secret } }] }),
  'a Secret as YAML': (secret) => `apiVersion: v1\nkind: Secret\ndata:\n  any: ${secret}\n`,
  'a Secret as YAML among others': (secret) => `kind: ConfigMap\n---\n- kind: "Secret"\n  stringData: {any: ${secret}}\n`,
  'a Secret as JSON': (secret) => JSON.stringify(secretOf(secret)),
  'a list of Secrets as JSON': (secret) => JSON.stringify({ kind: 'SecretList', items: [{ data: { any: secret } }] }),
  'a bearer token': (secret) => `sent Bearer ${secret} along`,
  'a header': (secret) => `Authorization: Digest ${secret}`,
  'basic authentication': (secret) => `Basic ${base64(`admin:${secret}`)}`,
  'a JSON Web Token': (secret) => `got eyJhbGciOiJub25lIn0.${secret}.${secret}`,
  'a bootstrap token': (secret) => `kubeadm join 10.0.0.1 abcdef.${secret}`,
  'the user of a URL': (secret) => `cloning https://me:${secret}@example.com/x`,
  'a token as user of a URL': (secret) => `cloning https://${secret}@example.com/x`,
  'a password in YAML': (secret) => `user: me\npassword: ${secret} ${secret}\n`,
  'a password in YAML, quoted': (secret) => `{"password":"a \\" b ${secret}", user: me`,
  'a password after the name of a Secret': (secret) => `secretName: x, secretRef={y} tokenTTL: 5, password: ${secret}`,
  'a password in YAML, as a block': (secret) => `api-key: |\n  one\n\n  ${secret}\n`,
  'tokens in YAML, as a list': (secret) => `tokens:\n- a\n- ${secret}\n`,
  'key data in YAML': (secret) => `client-key-data: ${secret}`,
  'a shell variable': (secret) => `export AWS_SECRET_ACCESS_KEY=${secret} && go`,
  'a shell variable, quoted': (secret) => `DB_PASSWORD='a b ${secret}' go`,
  'a flag': (secret) => `kubeadm join --discovery-token ${secret} --x`,
  'a flag with an equals sign': (secret) => `login --password=${secret}`,
  'base64 of a private key': (secret) => base64(pem(secret)),
  'base64 of a private key within a text': (secret) => `echo ${base64(pem(secret))} | base64 -d`,
  'base64 of a private key, after a path': (secret) => `file/x${base64(pem(secret))}`,
  'base64 of a private key, in lines': (secret) => base64(pem(secret.repeat(9))).replace(/.{64}/g, '$&\n'),
  'base64url of a private key': (secret) => Buffer.from(`??>>${pem(secret)}`).toString('base64url'),
  'base64 of base64 of a kubeconfig': (secret) => base64(`content: ${base64(kubeconfigOf(secret))}`),
  'base64 of a Secret in JSON': (secret) => base64(JSON.stringify(secretOf(secret))),
  'JSON in JSON': (secret) => JSON.stringify({ a: JSON.stringify({ b: { password: secret } }) }),
  'JSON with a secret name within a text': (secret) => `patch was ${JSON.stringify(JSON.stringify({ password: secret }))}`,
  'base64 in more layers than are decoded': (secret) => base64(base64(base64(base64(base64(base64(secret)))))),
}

/** Forms of a secret in an object: the added members. */
const members: { readonly [form: string]: (secret: string) => object } = {
  ...Object.fromEntries(
    `password adminPassword db-passwd passphrase secret clientSecret token joinToken credentials apiKey api_key access-key privateKey
    ssh-privatekey signingKey encryptionKey client-key-data Authorization bearer cookie kubeconfig .dockerconfigjson .dockercfg tls.key
    example.com/token TOKEN`
      .split(/\s+/)
      .map((name) => [`the field ${name}`, (secret: string) => ({ [name]: secret })]),
  ),
  'an object with a secret name': (secret) => ({ credentials: { user: secret, more: [{ any: secret }] } }),
  'a list with a secret name': (secret) => ({ tokens: [secret, secret] }),
  'a Secret': secretOf,
  'a Secret with its data as text': (secret) => ({ x: { kind: 'Secret', stringData: { any: secret } } }),
  'a list of Secrets': (secret) => ({ kind: 'SecretList', items: [{ data: { any: secret } }] }),
  'a kubeconfig': (secret) => ({ kind: 'Config', users: [{ name: 'x', user: { exec: { args: [secret] } } }] }),
  'a variable with a secret name': (secret) => ({ name: 'dbPassword', value: { any: secret } }),
  'an environment': (secret) => ({ env: [{ name: 'API_KEY', value: secret }] }),
  'a header': (secret) => ({ key: 'Authorization', value: secret }),
  'an operation on a secret field': (secret) => ({ op: 'add', path: '/spec/adminPassword/current', value: secret }),
  'an operation on a secret annotation': (secret) => ({
    op: 'add',
    path: '/metadata/annotations/example.com~1token',
    value: secret,
  }),
  'a file with a key': (secret) => ({ files: [{ path: '/etc/kubernetes/pki/ca.key', content: secret }] }),
  'a definition of a variable with a secret name': (secret) => ({
    name: 'registryToken',
    schema: { openAPIV3Schema: { type: 'string', default: secret, example: secret, enum: [secret] } },
  }),
  'a schema with a secret property': (secret) => ({
    openAPIV3Schema: { type: 'object', properties: { password: { type: 'string', default: secret } } },
  }),
  'a text in lines': (secret) => ({ lines: pem(secret).split('\n') }),
  'a key of an object': (secret) => ({ [`token=${secret}`]: 1 }),
}

/** A canary has the form of the secret part of a bootstrap token: sixteen lower-case letters and digits. */
const Canary = /canary\d{10}/
let canaries = 0
const canary = (): string => `canary${String(canaries++).padStart(10, '0')}`

/** Returns a canary that a text contains, also in base64. Decodes nested base64 as long as the decoded text is ASCII. */
function findCanary(text: string): string | undefined {
  const [plain] = Canary.exec(text) ?? []
  if (plain) return plain
  for (const [run] of text.matchAll(/[A-Za-z0-9+/_-]{16,}={0,2}/g)) {
    for (const start of [0, 1, 2, 3]) {
      const decoded = Buffer.from(run.slice(start), 'base64').toString('latin1')
      const within = Canary.exec(decoded)?.[0] ?? (/^[\x20-\x7e\s]+$/.test(decoded) ? findCanary(decoded) : undefined)
      if (within) return within
    }
  }
  return undefined
}

const patch = base64(JSON.stringify([{ op: 'add', path: '/spec/template/spec', value: { a: 'b', c: { d: ['e'] } } }]))
const mergePatch = base64(JSON.stringify({ spec: { a: 'b' } }))
const encodedPatch = { patchType: 'JSONPatch', patch }
const steps = { controlPlaneUpgrades: [{ version: 'v1.35.0' }], workersUpgrades: [{ version: 'v1.35.0' }] }
/** Example values of the response fields that only one hook has, by hook. Other hooks have no such fields. */
const contents: { readonly [hook: string]: object } = {
  Discovery: { handlers: [{ name: 'gate', requestHook: { apiVersion: 'a/v1', hook: 'X' }, failurePolicy: 'Fail' }] },
  GenerateUpgradePlan: steps,
  GeneratePatches: {
    items: [
      { uid: '1', patchType: 'JSONPatch', patch },
      { uid: '2', patchType: 'JSONMergePatch', patch: mergePatch },
    ],
  },
  DiscoverVariables: { variables: [{ name: 'a', schema: { openAPIV3Schema: { type: 'string', default: 'x' } } }] },
  CanUpdateMachine: { machinePatch: encodedPatch, infrastructureMachinePatch: encodedPatch, bootstrapConfigPatch: encodedPatch },
  CanUpdateMachineSet: {
    machineSetPatch: encodedPatch,
    infrastructureMachineTemplatePatch: encodedPatch,
    bootstrapConfigTemplatePatch: encodedPatch,
  },
}

const exchanges: [string, Json][] = hookCatalog.flatMap((hook) => [
  [`request of ${hook.name}`, { ...(fixture(hook) as object), settings: { region: 'eu1' } } as unknown as Json],
  [`response of ${hook.name}`, { status: 'Success', message: 'all is well', ...contents[hook.name] } as unknown as Json],
])

/** Returns the value with changed strings and extended objects, also inside patches. */
function changedEverywhere(value: unknown, text: (text: string) => string, extraMembers: () => object): unknown {
  if (typeof value === 'string') {
    const within = /^[A-Za-z0-9+/]{16,}=*$/.test(value) ? parsed(Buffer.from(value, 'base64').toString()) : undefined
    return within === undefined ? text(value) : base64(JSON.stringify(changedEverywhere(within, text, extraMembers)))
  }
  if (Array.isArray(value)) return value.map((item) => changedEverywhere(item, text, extraMembers))
  if (!isRecord(value)) return value
  const changed = Object.entries(value).map(([key, one]) => [key, changedEverywhere(one, text, extraMembers)])
  return { ...Object.fromEntries(changed), ...extraMembers() }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the requests and responses in which a planted canary is not redacted. */
const leaks = (plant: (exchange: Json) => unknown): string[] =>
  exchanges.flatMap(([name, exchange]) => {
    const planted = plant(exchange)
    expect(findCanary(JSON.stringify(planted))).toBeDefined()
    const leaked = findCanary(JSON.stringify(redact(planted)))
    return leaked === undefined ? [] : [`${name}: ${leaked}`]
  })

describe.each(Object.entries(texts))('%s', (_, form) => {
  it('is redacted when it replaces any string', () =>
    expect(leaks((exchange) => changedEverywhere(exchange, () => form(canary()), Object))).toEqual([]))

  it('is redacted when it follows any string', () =>
    expect(leaks((exchange) => changedEverywhere(exchange, (text) => `${text}\n${form(canary())}`, Object))).toEqual([]))

  it('is redacted idempotently', () => {
    const once = redactText(form(canary()))
    expect(redactText(once)).toBe(once)
  })
})

test.each(Object.entries(members))('%s is redacted in every object', (_, form) =>
  expect(leaks((exchange) => changedEverywhere(exchange, String, () => form(canary())))).toEqual([]),
)

test.each(exchanges)('the %s without secrets is unchanged', (_, exchange) => expect(redact(exchange)).toEqual(exchange))

test.each([
  ['the name of a Secret', { dataSecretName: 'demo-bootstrap', secretRef: { name: 'x' }, tokenTTL: '1h' }],
  [
    'the path of a token file',
    { 'token-auth-file': '/etc/tokens.csv', args: '--authorization-mode=Node,RBAC --token-auth-file x' },
  ],
  ['a certificate', { caBundle: base64('-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n') }],
  ['a public key', { sshAuthorizedKeys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB me@example.com'] }],
  ['a message about a Secret', { message: 'failed to get secret "default/x": not found' }],
  ['an image', { image: 'registry.example.com:5000/team/kube-apiserver:v1.35.0@sha256:0123456789abcdef' }],
  ['a selector', { matchExpressions: [{ key: 'tier', operator: 'In', values: ['a'] }] }],
])('%s is unchanged', (_, value) => expect(redact(value)).toEqual(value))

test('redaction of a hostile text takes linear time', () => {
  const words = 'a|A|/|"|\\|[| |- |--a|a.|eyJ|a://|a://b|https://|kind:|Basic |bearer |token|token:|secretName:|abcdef.|\\"'
  const lines = [
    '\n',
    'token:\n',
    'token: |\n',
    '--token ',
    '-----BEGIN PRIVATE KEY',
    `${'A'.repeat(64)}\n`,
    `${'A'.repeat(64)} \n `,
  ]
  const parts = [...words.split('|'), ...lines]
  // A pattern with quadratic time would need minutes.
  for (const part of parts)
    for (const head of ['', 'password="', 'token: |', '--']) redactText(`${head}${part.repeat(100_000 / part.length)}!`)
  for (const end of ['', '.', '.a']) redactText(`${'-eyJaaaaa'.repeat(60_000)}${end}`)
}, 60_000)

test('redacted values keep their type', () => {
  const value = { credentials: { user: 'a', pin: 5, on: true, none: null, list: ['x'] }, patch: base64('{"token":"abc"}') }
  expect(redact(value)).toEqual({
    credentials: { user: '[redacted]', pin: 0, on: true, none: null, list: ['[redacted]'] },
    patch: base64('{"token":"[redacted]"}'),
  })
})

describe('random JSON', () => {
  const within = fc
    .tuple(fc.constantFrom(...Object.values(texts)), fc.constantFrom('', 'plain ', '{', '日本 ', 'x=1\n', '"'))
    .map(([form, prefix]) => `${prefix}${form(canary())}`)
  const whole = fc.constantFrom(...Object.values(members)).map((form) => JSON.stringify(form(canary())))
  const wrap = fc.array(
    fc.constantFrom(base64, JSON.stringify, (text: string) => JSON.stringify({ a: [text] })),
    { maxLength: 3 },
  )
  const leaf = fc.oneof(
    { weight: 1, arbitrary: fc.string() },
    {
      weight: 3,
      arbitrary: fc
        .tuple(fc.oneof(within, whole), wrap)
        .map(([text, layers]) => layers.reduce((inner, layer) => layer(inner), text)),
    },
  )
  const { tree } = fc.letrec<{ tree: unknown; leaf: string }>((tie) => ({
    leaf,
    tree: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      tie('leaf'),
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(fc.string(), tie('tree'), { maxKeys: 4 }),
      fc.constantFrom(...Object.values(members)).map((form) => form(canary())),
    ),
  }))

  test('contains no canary after redaction, which is idempotent and does not change its input', () => {
    const numRuns = 300 * Number(process.env.CAPSTAN_FUZZ ?? 1)
    fc.assert(
      fc.property(tree, (value) => {
        const textBefore = JSON.stringify(value)
        const clean = redact(value)
        expect(findCanary(JSON.stringify(clean))).toBeUndefined()
        expect(redact(draft(clean))).toEqual(clean)
        expect(JSON.stringify(value)).toBe(textBefore)
      }),
      { numRuns, seed: 5 },
    )
  })
})
