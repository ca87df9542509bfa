/** Live checks of the contract InfraMachine. */
import { InfraMachineContract } from '@capstan/api/contract'
import { record } from '../../manifests.ts'
import { read } from '../read.ts'
import { observation } from '../verdict.ts'
import { historiesOf, isInitialized, type LiveCheck, orStopped, statesAt, contractVersionOf, whenReady } from './check.ts'

export const infraMachineProviderID: LiveCheck = {
  looksAt: 'spec.providerID of each object: set when provisioned, the same from then on, and different from all others.',
  scenario: 'life',
  contract: 'InfraMachine',
  run(recorded) {
    const version = contractVersionOf(recorded, 'InfraMachine')
    const field = InfraMachineContract.providerID.paths[version]
    const ids = new Set<unknown>()
    const observations = historiesOf(recorded, 'InfraMachine').flatMap((history) => {
      const first = history.states.find(({ object }) => isInitialized('InfraMachine', object, version))
      if (!first) return []
      const id: unknown = read(recorded, 'InfraMachine', first.object, InfraMachineContract.providerID)
      const isString = typeof id === 'string' && id !== ''
      const isDuplicate = ids.has(id)
      ids.add(id)
      const changed = history.states.find(
        ({ order, object }) =>
          order >= first.order && read(recorded, 'InfraMachine', object, InfraMachineContract.providerID) !== id,
      )
      return [
        observation({ ...first, field, expected: 'a non-empty string when provisioned is true', found: id, holds: isString }),
        observation({
          ...(changed ?? first),
          field,
          expected: 'unchanged once provisioned is true, and different from that of other objects',
          found: changed ? read(recorded, 'InfraMachine', changed.object, InfraMachineContract.providerID) : id,
          holds: !changed && !isDuplicate,
        }),
      ]
    })
    return orStopped(recorded, 'provisioned', observations)
  },
}

export const infraMachineAddresses = whenReady('InfraMachine', 'The shape of status.addresses.', (object, at, recorded) => {
  const addresses: unknown = read(recorded, 'InfraMachine', object, InfraMachineContract.addresses)
  if (addresses === undefined) return []
  const holds =
    Array.isArray(addresses) &&
    addresses.every((address) => typeof record(address).type === 'string' && typeof record(address).address === 'string')
  const expected = 'a list of objects with type and address'
  return [observation({ object, field: 'status.addresses', at, expected, found: addresses, holds })]
})

export const infraMachineFailureDomain = whenReady(
  'InfraMachine',
  'The types of status.failureDomain and spec.failureDomain.',
  (object, at, recorded) =>
    [InfraMachineContract.failureDomain, InfraMachineContract.specFailureDomain].flatMap((contractField) => {
      const domain: unknown = read(recorded, 'InfraMachine', object, contractField)
      if (domain === undefined) return []
      const field = contractField.paths[contractVersionOf(recorded, 'InfraMachine')]
      return [observation({ object, field, at, expected: 'a string', found: domain, holds: typeof domain === 'string' })]
    }),
)

/**
 * Declares a check that the InfraMachine `name` is not provisioned at `mark`, a named moment of the scenario `late`. `circumstance` describes
 * this moment in the texts of the check, such as `while its Machine has no bootstrap data`.
 */
export const waitsFor = (circumstance: string, name: string, mark: string): LiveCheck => ({
  looksAt: `An InfraMachine with an owner, ${circumstance}.`,
  scenario: 'late',
  contract: 'InfraMachine',
  run(recorded) {
    const version = contractVersionOf(recorded, 'InfraMachine')
    const observations = statesAt(recorded, 'InfraMachine', mark)
      .filter(({ state: { object } }) => object.metadata.name === name)
      .map(({ state: { object, at } }) => {
        const isDone = isInitialized('InfraMachine', object, version)
        return observation({
          object,
          field: InfraMachineContract.provisioned.paths[version],
          at,
          expected: `not true ${circumstance}`,
          found: isDone,
          holds: !isDone,
        })
      })
    return orStopped(recorded, mark, observations)
  },
})
