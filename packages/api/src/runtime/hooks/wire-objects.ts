/** Objects of providers and Machines as hooks carry them. Upstream: api/runtime/hooks/v1alpha1, v1.14. */
import type { JSONSchema, KubeObject, UnknownObject } from '@capstan/kube'
import { ObjectMetaSchema, s } from '@capstan/kube'
import { Machine } from '../../core/v1beta2/machine.ts'
import { MachineSet } from '../../core/v1beta2/machine-set.ts'

const kept = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const

/** The parts of an object in a request: type, name, labels and annotations, and spec. */
type OnTheWire<T extends KubeObject> = Omit<T, 'status'>

/** The schema of a kind as requests carry it: without status, and tolerant, since it comes from whichever core calls. */
export function onTheWire({ schema }: { readonly schema: JSONSchema }): JSONSchema {
  const { status: _, ...properties } = schema.properties ?? {}
  return { ...kept, required: ['spec'], properties: { ...properties, metadata: wireMetadata } }
}

/** Without what says who wrote a field: it changes when nothing else does. */
const wireMetadata: JSONSchema = (() => {
  const { managedFields: _, selfLink: _none, ...properties } = ObjectMetaSchema.properties ?? {}
  return { ...ObjectMetaSchema, properties }
})()

/** An object or template of a provider. */
export const wireObject = (doc: string) => s.of<UnknownObject>(kept).doc(doc)

export type WireMachine = OnTheWire<Machine>
export const wireMachine = s.of<WireMachine>(onTheWire(Machine)).doc('The Machine (cluster.x-k8s.io/v1beta2): metadata and spec.')

export type WireMachineSet = OnTheWire<MachineSet>
export const wireMachineSet = s
  .of<WireMachineSet>(onTheWire(MachineSet))
  .doc('The MachineSet (cluster.x-k8s.io/v1beta2): metadata and spec.')
