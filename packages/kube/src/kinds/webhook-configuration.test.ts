import { describe, expect, test } from 'vitest'
import { MutatingWebhookConfiguration, ValidatingWebhookConfiguration, type Webhook } from './webhook-configuration.ts'

const context = { operation: 'CREATE', oldObject: undefined, dryRun: false } as const
const valid: Webhook = {
  name: 'a.example.com',
  clientConfig: { url: 'https://127.0.0.1:9443/mutate' },
  rules: [{ operations: ['CREATE'], apiGroups: ['*'], apiVersions: ['*'], resources: ['widgets', 'widgets/status'] }],
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
}
const configuration = (...webhooks: Webhook[]) =>
  ({ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'X', metadata: { name: 'x' }, webhooks }) as never

test('omitted fields of a webhook get the defaults of Kubernetes', () => {
  const object = configuration({
    ...valid,
    clientConfig: { service: { namespace: 'n', name: 's' } },
  }) as MutatingWebhookConfiguration
  MutatingWebhookConfiguration.default?.(object, context)
  expect(object.webhooks?.[0]).toMatchObject({
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
    timeoutSeconds: 10,
    reinvocationPolicy: 'Never',
    clientConfig: { service: { port: 443 } },
    rules: [{ scope: '*' }],
  })
})

test('the error for a match condition that does not compile contains the position of the problem', () => {
  const matchConditions = [{ name: 'a', expression: 'request.nope == 1' }]
  expect(MutatingWebhookConfiguration.validate?.(configuration({ ...valid, matchConditions }), context)[0]?.text).toMatch(
    /^Invalid value: "request.nope == 1": compilation failed: ERROR: <input>:1:8: undefined field 'nope'/,
  )
})

test('a webhook with all required fields is accepted', () => {
  expect(ValidatingWebhookConfiguration.validate?.(configuration(valid), context)).toEqual([])
})

describe('a webhook configuration is rejected for', () => {
  const rule = valid.rules![0]!
  test.each<[title: string, change: object, field: string, text: string]>([
    [
      'a name with fewer than three segments',
      { name: 'a.b' },
      'name',
      'Invalid value: "a.b": should be a domain with at least three segments separated by dots',
    ],
    [
      'a missing sideEffects',
      { sideEffects: undefined },
      'sideEffects',
      'Required value: must specify one of None, NoneOnDryRun',
    ],
    [
      'a value of sideEffects that only v1beta1 allows',
      { sideEffects: 'Some' },
      'sideEffects',
      'Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
    ],
    [
      'an empty list of review versions',
      { admissionReviewVersions: [] },
      'admissionReviewVersions',
      'Required value: must specify one of v1, v1beta1',
    ],
    [
      'an unknown review version',
      { admissionReviewVersions: ['v9'] },
      'admissionReviewVersions',
      'Invalid value: ["v9"]: must include at least one of v1, v1beta1',
    ],
    [
      'a timeout above the maximum',
      { timeoutSeconds: 31 },
      'timeoutSeconds',
      'Invalid value: 31: the timeout value must be between 1 and 30 seconds',
    ],
    ['an empty clientConfig', { clientConfig: {} }, 'clientConfig', 'Required value: exactly one of url or service is required'],
    [
      'a URL with scheme http',
      { clientConfig: { url: 'http://h/' } },
      'clientConfig.url',
      `Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
    ],
    [
      'a service without name',
      { clientConfig: { service: { namespace: 'n', name: '' } } },
      'clientConfig.service.name',
      'Required value',
    ],
    [
      'an unknown failurePolicy',
      { failurePolicy: 'Maybe' },
      'failurePolicy',
      'Unsupported value: "Maybe": supported values: "Fail", "Ignore"',
    ],
    [
      'an unknown operation',
      { rules: [{ ...rule, operations: ['PATCH'] }] },
      'rules[0].operations[0]',
      'Unsupported value: "PATCH": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
    ],
    [
      'the operation * beside another operation',
      { rules: [{ ...rule, operations: ['*', 'CREATE'] }] },
      'rules[0].operations',
      `Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`,
    ],
    ['an empty list of resources', { rules: [{ ...rule, resources: [] }] }, 'rules[0].resources', 'Required value'],
    [
      'a match condition without an expression',
      { matchConditions: [{ name: 'a', expression: ' ' }] },
      'matchConditions[0].expression',
      'Required value',
    ],
    [
      'a match condition whose type is not bool',
      { matchConditions: [{ name: 'a', expression: '1' }] },
      'matchConditions[0].expression',
      'Invalid value: "1": must evaluate to bool but got int',
    ],
    [
      'two match conditions with the same name',
      { matchConditions: [1, 2].map(() => ({ name: 'a', expression: 'true' })) },
      'matchConditions[1].name',
      'Duplicate value: "a"',
    ],
  ])('%s', (_, change, field, text) => {
    expect(MutatingWebhookConfiguration.validate?.(configuration({ ...valid, ...change }), context)).toContainEqual(
      expect.objectContaining({ field: `webhooks[0].${field}`, text }),
    )
  })

  test('two webhooks with the same name', () => {
    expect(ValidatingWebhookConfiguration.validate?.(configuration(valid, valid), context)).toContainEqual(
      expect.objectContaining({ field: 'webhooks[1].name', text: 'Duplicate value: "a.example.com"' }),
    )
  })
})
