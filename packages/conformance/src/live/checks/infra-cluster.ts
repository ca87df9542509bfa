/** Live checks of the contract InfraCluster. */
import { Cluster } from '@capstan/api'
import { InfraClusterContract, isValidEndpoint } from '@capstan/api/contract'
import { record } from '../../manifests.ts'
import { read } from '../read.ts'
import { observation } from '../verdict.ts'
import {
  historiesOf,
  isInitialized,
  type LiveCheck,
  orStopped,
  statesAt,
  contractVersionOf,
  whenReady,
  noFinalizers,
} from './check.ts'

export const infraClusterEndpoint: LiveCheck = {
  looksAt:
    'spec.controlPlaneEndpoint when the infrastructure is provisioned. Only one of InfraCluster and control plane needs to provide the endpoint.',
  scenario: 'life',
  contract: 'InfraCluster',
  run(recorded) {
    const observations = historiesOf(recorded, 'InfraCluster').flatMap(({ states }) => {
      const first = states.find(({ object }) =>
        isInitialized('InfraCluster', object, contractVersionOf(recorded, 'InfraCluster')),
      )
      if (!first) return []
      const endpoint = read(recorded, 'InfraCluster', first.object, InfraClusterContract.controlPlaneEndpoint)
      const cluster = recorded.recording.histories(Cluster).find(({ states: [state] }) => state?.object.metadata.name === 'life')
      const clusterEndpoint = cluster?.states.at(-1)?.object.spec.controlPlaneEndpoint
      if (endpoint === undefined && isValidEndpoint(clusterEndpoint)) return []
      return [
        observation({
          object: first.object,
          field: InfraClusterContract.controlPlaneEndpoint.paths[contractVersionOf(recorded, 'InfraCluster')],
          at: first.at,
          expected: 'host and port when provisioned is true',
          found: endpoint,
          holds: isValidEndpoint(endpoint),
        }),
      ]
    })
    if (observations.length === 0 && recorded.marks.has('ready'))
      return { notApplicable: 'the control plane provides the endpoint' }
    return orStopped(recorded, 'provisioned', observations)
  },
}

export const infraClusterFailureDomains = whenReady(
  'InfraCluster',
  'The shape of status.failureDomains.',
  (object, at, recorded) => {
    const version = contractVersionOf(recorded, 'InfraCluster')
    const domains: unknown = read(recorded, 'InfraCluster', object, InfraClusterContract.failureDomains)
    if (domains === undefined) return []
    const holds =
      version === 'v1beta2'
        ? Array.isArray(domains) && domains.every((one) => typeof record(one).name === 'string')
        : !Array.isArray(domains) && typeof domains === 'object'
    const expected = version === 'v1beta2' ? 'a list of objects with a name' : 'a map from names'
    return [
      observation({ object, field: InfraClusterContract.failureDomains.paths[version], at, expected, found: domains, holds }),
    ]
  },
)

export const externallyManaged: LiveCheck = {
  looksAt:
    'An InfraCluster with the annotation cluster.x-k8s.io/managed-by, before the system that manages it reports it as provisioned; after that, its deletion.',
  scenario: 'externally-managed',
  contract: 'InfraCluster',
  run(recorded) {
    const observations = statesAt(recorded, 'InfraCluster', 'waited').flatMap(({ history, state }) => {
      const { object, at } = state
      const statusManagers = (object.metadata.managedFields ?? []).filter(({ subresource }) => subresource === 'status')
      return [
        observation({
          object,
          field: 'status',
          at,
          expected: 'never written by the provider',
          found: statusManagers.length === 0 ? undefined : object.status,
          holds: statusManagers.length === 0 && record(object.status).initialization === undefined,
        }),
        noFinalizers(state),
        ...(recorded.marks.has('provisioned')
          ? [
              observation({
                object,
                field: 'metadata.finalizers',
                at: history.deleted?.at ?? at,
                expected: 'deleted without an action of the provider',
                found: history.deleted ? 'deleted' : 'not deleted',
                holds: history.deleted !== undefined,
              }),
            ]
          : []),
      ]
    })
    return orStopped(recorded, 'externally managed', observations)
  },
}
