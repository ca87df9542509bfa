/** Live checks of the contract BootstrapConfig. A mark is a named moment of the scenario. */
import { ClusterNameLabel, MachineControlPlaneLabel } from '@capstan/api'
import { BootstrapConfigContract } from '@capstan/api/contract'
import { Secret, type UnknownObject } from '@capstan/kube'
import { record } from '../../manifests.ts'
import type { ScenarioRecord } from '../bench.ts'
import { read } from '../read.ts'
import { type Observation, observation } from '../verdict.ts'
import { type LiveCheck, orStopped, statesAt, objectsAt } from './check.ts'

/**
 * Returns the BootstrapConfigs that existed at a mark and were not being deleted, each with the Secret that its status names, if there is
 * one.
 */
function dataSecrets(recorded: ScenarioRecord, mark: string) {
  const secrets = objectsAt(recorded, Secret, mark)
  return statesAt(recorded, 'BootstrapConfig', mark).map(({ state: { object, at } }) => {
    const name: unknown = read(recorded, 'BootstrapConfig', object, BootstrapConfigContract.dataSecretName)
    return { config: object, at, name, secret: secrets.find(({ object: secret }) => secret.metadata.name === name)?.object }
  })
}

export const bootstrapDataSecret: LiveCheck = {
  looksAt:
    'The Secret that status.dataSecretName names: its label, its controller and its key "value". Its content is not printed.',
  scenario: 'life',
  contract: 'BootstrapConfig',
  run(recorded) {
    const observations = dataSecrets(recorded, 'ready').flatMap(({ config, at, name, secret }) => {
      const owner = secret?.metadata.ownerReferences?.find(({ controller }) => controller)
      const observe = (field: string, expected: string, value: unknown, holds: boolean): Observation =>
        observation({ object: secret ?? config, field, at, expected, found: value, holds })
      if (!secret) return [observe('status.dataSecretName', 'the name of a Secret', name, false)]
      return [
        observe('status.dataSecretName', 'the name of a Secret', name, true),
        observe(
          `metadata.labels[${ClusterNameLabel}]`,
          'life',
          secret.metadata.labels?.[ClusterNameLabel],
          secret.metadata.labels?.[ClusterNameLabel] === 'life',
        ),
        observe(
          'metadata.ownerReferences',
          `${config.kind} ${config.metadata.name} as controller`,
          owner && `${owner.kind} ${owner.name}`,
          owner?.uid === config.metadata.uid,
        ),
        observe('data.value', 'bootstrap data', Object.keys(record(secret.data)), Boolean(record(secret.data).value)),
      ]
    })
    return orStopped(recorded, 'ready', observations)
  },
}

/** Values of the key `format` of a data Secret; `undefined` if the Secret does not have this key. */
const readableFormats = ['cloud-config', 'ignition', undefined]

/** Checks that bootstrap data in one of `readableFormats` contain a text. Only the provider can read other formats. */
const bootstrapContains = (text: RegExp, expected: string, applies: (config: UnknownObject) => boolean): LiveCheck => ({
  looksAt: `Bootstrap data in the formats cloud-config and ignition, or without a format: ${expected}.`,
  scenario: 'life',
  contract: 'BootstrapConfig',
  run(recorded) {
    const secrets = dataSecrets(recorded, 'ready').filter(({ config, secret }) => secret !== undefined && applies(config))
    const observations = secrets.flatMap(({ secret, at }) => {
      const { value, format } = record(secret!.data)
      const name = typeof format === 'string' ? atob(format) : undefined
      if (!readableFormats.includes(name)) return []
      // Ignition contains files as percent-encoded data URLs.
      const holds = typeof value === 'string' && text.test(atob(value).replaceAll('%2F', '/'))
      return [
        observation({ object: secret!, field: 'data.value', at, expected, found: holds ? 'contained' : 'not contained', holds }),
      ]
    })
    if (secrets.length > 0 && observations.length === 0)
      return { notTestable: 'only the provider can read the format of the bootstrap data' }
    return orStopped(recorded, 'ready', observations)
  },
})

export const bootstrapSentinelFile = bootstrapContains(
  /bootstrap-success\.complete/,
  'the data create bootstrap-success.complete',
  () => true,
)

export const bootstrapTaint = bootstrapContains(
  /node\.cluster\.x-k8s\.io\/uninitialized/,
  'the data taint Nodes of workers with node.cluster.x-k8s.io/uninitialized',
  ({ metadata }) => metadata.labels?.[MachineControlPlaneLabel] === undefined,
)
