import { expect, test } from 'vitest'
import { ExtensionConfig } from '../extension-config.ts'
import { defaultExtensionConfig, extensionConfigErrors } from './extension-config.ts'

const metadata = { name: 'hooks', uid: '', resourceVersion: '', creationTimestamp: '' }
const config = (clientConfig: ExtensionConfig['spec']['clientConfig'], name = 'hooks'): ExtensionConfig => ({
  apiVersion: 'runtime.cluster.x-k8s.io/v1beta2',
  kind: 'ExtensionConfig',
  metadata: { ...metadata, name },
  spec: { clientConfig, namespaceSelector: {} },
})

test('selects all namespaces and port 443 by default', () => {
  const object: ExtensionConfig = { ...config({}), spec: { clientConfig: { service: { name: 'a', namespace: 'b' } } } }
  defaultExtensionConfig(object)
  expect(object.spec).toEqual({ clientConfig: { service: { name: 'a', namespace: 'b', port: 443 } }, namespaceSelector: {} })
})

const service = { name: 'a', namespace: 'b', port: 443 }
test.each([
  ['a URL', config({ url: 'https://127.0.0.1:9443/prefix' }), []],
  ['neither URL nor Service', config({}), ['spec.clientConfig: Required value: either url or service must be defined']],
  [
    'both URL and Service',
    config({ url: 'https://a', service }),
    ['spec.clientConfig: Forbidden: only one of url or service can be defined'],
  ],
  [
    'plain HTTP',
    config({ url: 'http://a' }),
    [`spec.clientConfig.url: Invalid value: "http://a": 'https' is the only allowed URL scheme, e.g. https://example.com`],
  ],
  [
    'port 0',
    config({ service: { ...service, port: 0 } }),
    ['spec.clientConfig.service.port: Invalid value: 0: must be between 1 and 65535, inclusive'],
  ],
  [
    'a relative path',
    config({ service: { ...service, path: 'hooks' } }),
    [
      'spec.clientConfig.service.path: Invalid value: "hooks": must be a valid URL path e.g. /path/to/hook: parse "hooks": invalid URI for request',
      'spec.clientConfig.service.path: Invalid value: "hooks": must start with "/" to be a valid URL path',
    ],
  ],
  [
    'a name with a dot',
    config({ url: 'https://a' }, 'a.b'),
    ['metadata.name: Invalid value: "a.b": ExtensionConfig name should be a valid DNS1123 label name: [must not contain dots]'],
  ],
])('validates an ExtensionConfig with %s', (_, object, errors) => {
  expect(extensionConfigErrors(object).map(({ field, text }) => `${field}: ${text}`)).toEqual(errors)
  expect(ExtensionConfig.validate!(object, { operation: 'CREATE', oldObject: undefined, dryRun: false })).toHaveLength(
    errors.length,
  )
})

test.each([
  ['runtime.capstan.dev/object-selector', 'team in (a, b),!legacy', undefined],
  ['runtime.capstan.dev/object-selector', 'team in', /unable to parse requirement: found '' expected: '\('/],
  ['runtime.capstan.dev/handler-overrides', '{"gate":{"timeoutSeconds":30,"failurePolicy":"Ignore"}}', undefined],
  ['runtime.capstan.dev/handler-overrides', '{', /must be JSON such as/],
  [
    'runtime.capstan.dev/handler-overrides',
    '{"gate":{"timeoutSeconds":31}}',
    /gate.timeoutSeconds must be a whole number from 1 to 30/,
  ],
  ['runtime.capstan.dev/handler-overrides', '{"gate":{"failurePolicy":"ignore"}}', /gate.failurePolicy must be Ignore or Fail/],
  [
    'runtime.capstan.dev/handler-overrides',
    '{"gate":{"timeout":3}}',
    /gate.timeout is not known: expected timeoutSeconds or failurePolicy/,
  ],
])('validates the annotation %s with the value %s', (name, text, problem) => {
  const object = config({ url: 'https://a' })
  const errors = extensionConfigErrors({ ...object, metadata: { ...object.metadata, annotations: { [name]: text } } })
  expect(errors.map(({ field }) => field)).toEqual(problem ? [`metadata.annotations[${name}]`] : [])
  if (problem) expect(errors[0]!.text).toMatch(problem)
})
