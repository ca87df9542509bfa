import { describe, expect, test } from 'vitest'
import type { Attributes, User } from '@capstan/apiserver'
import type { ServerContext } from '@capstan/apiserver/kinds'
import type { ResourceClaimStatus, ResourceV1ResourceClaim as ResourceClaim } from '../schemas/types.ts'
import { statusPermissionErrors } from './status-permissions.ts'

const claim = (status: ResourceClaimStatus): ResourceClaim => ({
  metadata: { name: 'gpu', namespace: 'team' } as ResourceClaim['metadata'],
  spec: { devices: {} },
  status,
})
const device = { driver: 'gpu.example.com', pool: 'node-1', device: 'gpu-0' }
const terms = (node: string) => ({
  nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }],
})
const allocation = { devices: { results: [{ request: 'gpu', ...device }] }, nodeSelector: terms('node-1') }
const userWithoutNode: User = { name: 'bob', groups: [] }
const driverOn = (node: string): User => ({
  name: 'system:serviceaccount:drivers:gpu',
  groups: [],
  extra: { 'authentication.kubernetes.io/node-name': [node] },
})

/** Returns the permissions that are checked when the authorizer allows those in `allowed`, and the resulting errors. */
function checkStatus(now: ResourceClaimStatus, before: ResourceClaimStatus, caller: User, allowed: readonly string[] = []) {
  const checkedPermissions: string[] = []
  const authorizer = {
    decide(attributes: Attributes) {
      if (attributes.kind === 'path') throw new TypeError('expected only permissions for resources')
      const { verb, resource, subresource, namespace = '*', name = '*' } = attributes
      const permission = `${verb} ${resource}/${subresource} ${namespace}/${name}`
      checkedPermissions.push(permission)
      return { allowed: allowed.includes(permission), reason: '' }
    },
  }
  const context = {
    subresource: 'status',
    verb: 'patch',
    namespace: 'default',
    server: { authorizer } as unknown as ServerContext,
    caller,
    warn: () => {},
  } as const
  return {
    checkedPermissions,
    errors: statusPermissionErrors(claim(now), claim(before), context).map(({ field, text }) => `${field}: ${text}`),
  }
}

describe('writing the status of a claim', () => {
  const consumer = { resource: 'pods', name: 'p', uid: 'u' }
  const changedDevice = { ...device, data: { a: 1 } }
  const bind = 'patch resourceclaims/binding */*'
  const onAnyNode = 'arbitrary-node:patch resourceclaims/driver team/gpu.example.com'
  const onOwnNode = 'associated-node:patch resourceclaims/driver team/gpu.example.com'

  test.each<[string, ResourceClaimStatus, ResourceClaimStatus, User, string[]]>([
    [
      'no permission without changes',
      { allocation, devices: [changedDevice] },
      { allocation, devices: [changedDevice] },
      userWithoutNode,
      [],
    ],
    ['permission to bind, for allocation', { allocation }, {}, userWithoutNode, [bind]],
    ['permission to bind, for reservation', { allocation, reservedFor: [consumer] }, { allocation }, userWithoutNode, [bind]],
    [
      'permission for the driver, to add the status of its devices',
      { allocation, devices: [changedDevice] },
      { allocation },
      userWithoutNode,
      [onAnyNode],
    ],
    [
      'permission for the driver, to change the status of its devices',
      { allocation, devices: [changedDevice] },
      { allocation, devices: [device] },
      userWithoutNode,
      [onAnyNode],
    ],
    [
      'permission for the driver, to remove the status of its devices',
      { allocation },
      { allocation, devices: [changedDevice] },
      userWithoutNode,
      [onAnyNode],
    ],
    ['only permission to bind, to release all devices', {}, { allocation, devices: [changedDevice] }, userWithoutNode, [bind]],
    [
      'one of two permissions, for a driver on the node of the allocation',
      { allocation, devices: [changedDevice] },
      { allocation },
      driverOn('node-1'),
      [onOwnNode, onAnyNode],
    ],
    [
      'the permission for any node, for a driver on another node',
      { allocation, devices: [changedDevice] },
      { allocation },
      driverOn('node-2'),
      [onAnyNode],
    ],
  ])('requires %s', (_, now, before, caller, permissions) => {
    expect(checkStatus(now, before, caller).checkedPermissions).toEqual(permissions)
    for (const allowed of permissions.length === 0 ? [[]] : permissions.map((permission) => [permission]))
      expect(checkStatus(now, before, caller, allowed).errors).toEqual([])
  })

  test('without the required permissions is rejected with errors that name them', () => {
    const { errors } = checkStatus({ allocation, devices: [changedDevice] }, {}, driverOn('node-1'))
    expect(errors).toEqual([
      'status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: User "system:serviceaccount:drivers:gpu" cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope',
      'status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[associated-node:patch arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "gpu.example.com" is forbidden: User "system:serviceaccount:drivers:gpu" cannot associated-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "team"',
    ])
  })
})
