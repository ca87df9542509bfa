import { coreKinds, ExtensionConfig, MachineDeployment } from '@capstan/api'
import { testEnv } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'
import { providerAdmission } from './admission.ts'
import { lateDefaults } from './late-defaults.ts'

/** The kinds of core without defaulting and validation, as on an API server that does not call our admission. */
const kindsWithoutAdmission = coreKinds.map(({ default: _default, validate: _validate, ...kind }) => kind)
const startEnv = (kinds = kindsWithoutAdmission) => testEnv({ kinds, controllers: lateDefaults(providerAdmission(), coreKinds) })

let env: Awaited<ReturnType<typeof startEnv>>
afterEach(() => env.close())

/** Creates two objects. Resolves with the number of later writes by controllers. */
const createTwo = async () => {
  const { revision } = env.store
  await env.client.create(MachineDeployment, {
    metadata: { name: 'md', namespace: 'default', labels: { team: 'a' } },
    spec: {
      clusterName: 'demo',
      selector: {},
      template: {
        spec: {
          clusterName: 'demo',
          version: '1.36.0',
          bootstrap: { dataSecretName: 'data' },
          infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevMachineTemplate', name: 'm' },
        },
      },
    },
  } as never)
  await env.client.create(ExtensionConfig, { metadata: { name: 'ext' }, spec: { clientConfig: { url: 'https://127.0.0.1:1' } } })
  await env.settle()
  return env.store.revision - revision - 2
}

test('sets the defaults of each object with one write, on a server without our admission', async () => {
  env = await startEnv()
  expect(await createTwo()).toBe(2)
  expect(await env.client.get(MachineDeployment, { namespace: 'default', name: 'md' })).toMatchObject({
    metadata: { labels: { team: 'a', 'cluster.x-k8s.io/cluster-name': 'demo' } },
    spec: {
      replicas: 1,
      rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
      template: { spec: { version: 'v1.36.0' } },
    },
  })
  expect(await env.client.get(ExtensionConfig, { name: 'ext' })).toMatchObject({ spec: { namespaceSelector: {} } })
})

test('writes nothing if admission has set the defaults', async () => {
  env = await startEnv([...coreKinds])
  expect(await createTwo()).toBe(0)
})
