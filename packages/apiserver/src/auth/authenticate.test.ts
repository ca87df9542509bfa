import { expect, test } from 'vitest'
import { authenticator } from './authenticate.ts'
import { parseTokenFile } from './token-file.ts'

const file = `# comment
secret1,bob,1,"devs,ops"
secret2,"o""neil",2

secret3,carol,3,devs
`
const authenticate = authenticator(parseTokenFile(file))
const alice = { commonName: 'alice', organizations: ['devs'] }
const user = (name: string, ...groups: string[]) => ({ kind: 'user', name, groups: [...groups, 'system:authenticated'] })
const userWithUID = (uid: string, name: string, ...groups: string[]) => ({ ...user(name, ...groups), uid })

test.each([
  ['a certificate identifies the user of its subject', { certificate: alice }, user('alice', 'devs')],
  ['a certificate takes precedence over a token', { certificate: alice, authorization: 'Bearer secret1' }, user('alice', 'devs')],
  ['a token identifies its user, with groups', { authorization: 'Bearer secret1' }, userWithUID('1', 'bob', 'devs', 'ops')],
  ['a token identifies a user without groups', { authorization: 'bearer secret2' }, userWithUID('2', 'o"neil')],
  ['a token identifies a user with one group', { authorization: 'Bearer secret3' }, userWithUID('3', 'carol', 'devs')],
  ['an unknown token is rejected', { authorization: 'Bearer nope' }, { kind: 'rejected' }],
  ['a password counts as no credentials', { authorization: 'Basic Ym9iOng=' }, { kind: 'anonymous' }],
  ['an empty token counts as no credentials', { authorization: 'Bearer ' }, { kind: 'anonymous' }],
  ['a token after two spaces counts as no credentials', { authorization: 'Bearer  secret2' }, { kind: 'anonymous' }],
  ['a request without credentials is anonymous', {}, { kind: 'anonymous' }],
  [
    'a certificate without a common name counts as no credentials',
    { certificate: { commonName: '', organizations: [] } },
    { kind: 'anonymous' },
  ],
])('%s', (_, credentials, identity) => {
  expect(authenticate(credentials)).toEqual(identity)
})

test.each([
  ['a,b', /line 1 must have at least 3 columns/],
  ['ok,b,1\n,b,2', /line 2 has an empty token/],
  ['a,b,1\na,c,2', /line 2 has a token that appeared before/],
  ['topsecret,"b,1', /line 1 has a quote that is not closed/],
])('the error for the token file %j names the line without its content', (text, message) => {
  expect(() => parseTokenFile(text)).toThrow(message)
  expect(() => parseTokenFile(text)).not.toThrow(/topsecret/)
})
