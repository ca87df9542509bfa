import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installKinds } from '@capstan/controller'
import { createClient, systemClock, systemRandom } from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { localKinds, LocalMachine } from '@capstan/local'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runToEnd, start, type Started } from '../test-io.ts'

const folder = mkdtempSync(join(tmpdir(), 'capstan-xray-'))
const kubeconfig = join(folder, 'kubeconfig')
let server: Started

beforeAll(async () => {
  server = start(['apiserver', '--secure-port', '0', '--kubeconfig', kubeconfig])
  await server.line(/ready/)
  const transport = httpsTransport(await loadKubeconfig(kubeconfig), {
    clock: systemClock,
    random: systemRandom,
    userAgent: 'test',
  })
  const client = createClient(transport)
  await installKinds(client, localKinds, { clock: systemClock, random: systemRandom })
  await client.create(LocalMachine, { metadata: { name: 'm', namespace: 'default' }, spec: { providerID: 'local:///m' } })
  transport.close()
})
afterAll(async () => {
  await server.interrupt()
  rmSync(folder, { recursive: true })
})

const xray = (object: string, ...furtherArgs: string[]) => runToEnd(['xray', object, '--kubeconfig', kubeconfig, ...furtherArgs])

test('prints the contract version, its reason, the missing owner, and a table of fields', async () => {
  const { code, out } = await xray('localmachine/m')
  expect(code).toBe(0)
  const lines = out.split('\n')
  expect(lines[0]).toBe('LocalMachine default/m: InfraMachine, contract v1beta2, read as infrastructure.capstan.dev/v1alpha1')
  expect(lines[1]).toMatch(/^because {2}labels of the CustomResourceDefinition: cluster.x-k8s.io\/v1beta2=v1alpha1/)
  expect(lines[2]).toBe('owner    none: no core object refers to this object, or core has not set the owner reference yet')
  expect(lines[4]).toMatch(/FIELD +V1BETA2 \(CHOSEN\) +VALUE +V1BETA1 +VALUE +CORE/)
  expect(out).toMatch(/! +providerID +spec.providerID +local:\/\/\/m .*no owner: not copied to Machine.spec.providerID/)
})

test('prints JSON', async () => {
  const { out } = await xray('LocalMachine.infrastructure.capstan.dev/m', '-o', 'json')
  expect(JSON.parse(out)).toMatchObject({ contract: 'InfraMachine', contractVersion: 'v1beta2' })
})

test.each([
  ['LocalMachine', 'LocalMachine: expected KIND/NAME'],
  ['Nothing/m', 'no CustomResourceDefinition has the kind Nothing'],
  ['LocalMachineTemplate/m', 'LocalMachineTemplate is no kind of a provider contract'],
])('rejects %s', async (object, message) => {
  const { code, err } = await xray(object)
  expect(err).toContain(message)
  expect(code).toBe(2)
})

test('reports the not-found error of the API server, with exit code 1', async () => {
  const { code, err } = await xray('LocalMachine/other')
  expect(err).toContain('localmachines.infrastructure.capstan.dev "other" not found')
  expect(code).toBe(1)
})
