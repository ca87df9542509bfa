import { ClusterRole, ClusterRoleBinding, createClient, unknownKind } from '@capstan/kube'
import { expect, test } from 'vitest'
import { quiet, rejection, testServer } from '../test-server.ts'

const Request = unknownKind({
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  scope: 'Cluster',
})

/** Certificate signing requests that openssl created, for a member of group `devs` and a member of group `system:masters`. */
const requestOfDevs =
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIYk1JR0JBZ0VBTUI4eERUQUxCZ05WQkFvTUJHUmxkbk14RGpBTUJnTlZCQU1NQldGc2FXTmxNRmt3RXdZSApLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFSUhqUHZBTFF3TWw4MXo0TGRETXdmQnZMOGJ3a1dmVDBORUh3CllVdG16ajliWUhLY1pPOHdOL01QbkFHb3d5YSt6anU4WjdoTTlORXdGaUMwM2dCcHI2QUFNQW9HQ0NxR1NNNDkKQkFNQ0Ewa0FNRVlDSVFDUzEvblFHWjcrTGFTcVphN2o2allvbmNJOEpjbE5SNEpPTTFaWDBIdWtEd0loQUxKeApPL0t3bnRvRVkrUzhOSTV5UUQzQUhBWWV0d2dEOEFIZUlSWml3d3U1Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo='
const requestOfMasters =
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQlpEQ0J6Z0lCQURBbE1SY3dGUVlEVlFRS0RBNXplWE4wWlcwNmJXRnpkR1Z5Y3pFS01BZ0dBMVVFQXd3QgplRENCbnpBTkJna3Foa2lHOXcwQkFRRUZBQU9CalFBd2dZa0NnWUVBbXo5WVFUdVZkc1BiM3NYODYvZDE0VEo5ClVkbmMyTkZpL0hja1VUeUFVYlhLU3M4OXFhcE13MmZJMlJOOTRJdlpCSVkydTN6bTc1Uk5Xc1ZHMXRWNTc2Z3AKSHQ1ZFV2M1YrK3RQZSthOUpGZHp4bjFDMXYyeVhyd3UwWUlaWVRQb3ZNR3FTQjFCbHhqTDZzNENiSWF1R1NseApobjhnM1Y0WHlrSWNTNzFMenZjQ0F3RUFBYUFBTUEwR0NTcUdTSWIzRFFFQkN3VUFBNEdCQUNnemF2dERHZmNnCjNmbFd2U0dNeG9YU2RWU1VzQ1IvaG1VYTZtcC9JKzIvV3pycHduREVKYXlseEh1a29Hcm5QOE5aVGVHUWlnb3AKRlc4YzZiSWlYSnNveTJzaWxmelFQdk9ydS82QUpIT1JwczRYN2kvaXVncisvSDR3cldHT0svaTUvdWdKVURhcApMUzY1eVBYWThFMHVUZzNsVTRTSDVIWWZmK0F2Wk9DUwotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K'

const request = (name: string, signerName: string, body = requestOfDevs) => ({
  metadata: { name },
  spec: { request: body, signerName, usages: ['client auth'] },
})

const approval = { status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Fine' }] } }

test('approving and signing require permission for the signer or its domain', async () => {
  const { server, client } = await testServer({ authorization: ['RBAC'] })
  const group = ['certificates.k8s.io']
  await client.create(ClusterRole, {
    metadata: { name: 'bob' },
    rules: [
      { apiGroups: group, resources: ['*'], verbs: ['get', 'update', 'patch'] },
      { apiGroups: group, resources: ['signers'], resourceNames: ['example.com/mine'], verbs: ['approve'] },
      { apiGroups: group, resources: ['signers'], resourceNames: ['example.org/*'], verbs: ['approve', 'sign'] },
    ],
  })
  await client.create(ClusterRoleBinding, {
    metadata: { name: 'bob' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'bob' },
    subjects: [{ kind: 'User', name: 'bob', apiGroup: 'rbac.authorization.k8s.io' }],
  })
  await quiet()
  const bob = createClient(server.transport({ name: 'bob', groups: [] }, { authorized: true }))
  // This project's clients do not know the subresource `approval`.
  const patch = (name: string, subresource: string, body: object) =>
    rejection(bob.patch(Request, { name }, { type: 'strategic', body }, { subresource: subresource as 'status' }))

  await client.create(Request, request('mine', 'example.com/mine'))
  await client.create(Request, request('other', 'example.com/other'))
  await client.create(Request, request('org', 'example.org/any'))
  expect(await patch('mine', 'approval', approval)).toBe('accepted')
  expect(await patch('org', 'approval', approval)).toBe('accepted')
  expect(await patch('other', 'approval', approval)).toBe(
    '403 Forbidden: certificatesigningrequests.certificates.k8s.io "other" is forbidden: user not permitted to approve requests with signerName "example.com/other"',
  )
  const failed = { status: { conditions: [{ type: 'Failed', status: 'True', reason: 'Cannot' }] } }
  expect(await patch('mine', 'status', failed)).toContain(
    'user not permitted to sign requests with signerName "example.com/mine"',
  )
  expect(await patch('mine', 'status', {})).toBe('accepted')
  expect(await patch('org', 'status', failed)).toBe('accepted')
})

test('requests for the group system:masters are rejected only for the signer kubernetes.io/kube-apiserver-client', async () => {
  const { client } = await testServer()
  const signer = 'kubernetes.io/kube-apiserver-client'
  expect(await rejection(client.create(Request, request('a', signer, requestOfMasters)))).toContain(
    'use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
  )
  expect(await rejection(client.create(Request, request('a', signer)))).toBe('accepted')
  expect(await rejection(client.create(Request, request('b', 'example.com/mine', requestOfMasters)))).toBe('accepted')
})
