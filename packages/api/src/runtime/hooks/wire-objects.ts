/** Schemas of provider objects, Machines and MachineSets in hook requests. Upstream: api/runtime/hooks/v1alpha1, v1.14. */
import type { JSONSchema, KubeObject, UnknownObject } from '@capstan/kube'
import { ObjectMetaSchema, s } from '@capstan/kube'
import { Machine } from '../../core/v1beta2/machine.ts'
import { MachineSet } from '../../core/v1beta2/machine-set.ts'

const anyObject = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const

/** An object as hook requests contain it: without status. */
type OnTheWire<T extends KubeObject> = Omit<T, 'status'>

/** Returns the schema of a kind in requests, without status. It accepts unknown fields, because callers may be other versions of core. */
export function onTheWire({ schema }: { readonly schema: JSONSchema }): JSONSchema {
  const { status: _, ...properties } = schema.properties ?? {}
  return { ...anyObject, required: ['spec'], properties: { ...properties, metadata: wireMetadata } }
}

/** Schema of metadata without managedFields, which change even when no other field changes, and without the obsolete selfLink. */
const wireMetadata: JSONSchema = (() => {
  const { managedFields: _, selfLink: _none, ...properties } = ObjectMetaSchema.properties ?? {}
  return { ...ObjectMetaSchema, properties }
})()

/** Returns the schema of an object or template of a provider, with this description. */
export const wireObject = (doc: string) => s.of<UnknownObject>(anyObject).doc(doc)

export type WireMachine = OnTheWire<Machine>
export const wireMachine = s.of<WireMachine>(onTheWire(Machine)).doc('The Machine (cluster.x-k8s.io/v1beta2): metadata and spec.')

export type WireMachineSet = OnTheWire<MachineSet>
export const wireMachineSet = s
  .of<WireMachineSet>(onTheWire(MachineSet))
  .doc('The MachineSet (cluster.x-k8s.io/v1beta2): metadata and spec.')
