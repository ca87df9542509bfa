/** Stub kinds for providers that are not under test. `capstan conform` writes their status. */
import { defineKind, type DeclaredKind, s, type UnknownObject } from '@capstan/kube'

const group = 'conform.capstan.dev'
const labels = { 'cluster.x-k8s.io/v1beta2': 'v1' }

/** A control plane without Machines. `capstan conform` reports it as initialized. */
export const StubControlPlane = defineKind({
  group,
  version: 'v1',
  kind: 'StubControlPlane',
  plural: 'stubcontrolplanes',
  scope: 'Namespaced',
  doc: 'StubControlPlane stands in for a control plane while capstan conform tests an infrastructure provider.',
  labels,
  spec: s.object({}).optional(),
  status: s.object({
    initialization: s.object({ controlPlaneInitialized: s.boolean().optional() }).optional(),
    externalManagedControlPlane: s.boolean().optional(),
  }),
})

/** A bootstrap config. `capstan conform` creates the Secret with the bootstrap data, and writes the name of the Secret to the status. */
export const StubBootstrapConfig = defineKind({
  group,
  version: 'v1',
  kind: 'StubBootstrapConfig',
  plural: 'stubbootstrapconfigs',
  scope: 'Namespaced',
  doc: 'StubBootstrapConfig stands in for a bootstrap config while capstan conform tests an infrastructure provider.',
  labels,
  spec: s.object({}).optional(),
  status: s.object({
    initialization: s.object({ dataSecretCreated: s.boolean().optional() }).optional(),
    dataSecretName: s.string().optional(),
  }),
})

/** The stubs of a control plane and of a bootstrap config, in this order. */
export const stubs: readonly DeclaredKind<UnknownObject>[] = [
  StubControlPlane,
  StubBootstrapConfig,
] as unknown as DeclaredKind<UnknownObject>[]
