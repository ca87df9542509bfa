/** Objects of providers and Machines as hooks carry them. Upstream: api/runtime/hooks/v1alpha1, v1.14. */
import type { KubeObject, UnknownObject } from '@capstan/kube'
import { s } from '@capstan/kube'
import type { Machine } from '../../core/v1beta2/machine.ts'
import type { MachineSet } from '../../core/v1beta2/machine-set.ts'

/** What a request carries of an object: type, name, labels and annotations, and spec. */
type OnTheWire<T extends KubeObject> = Omit<T, 'status'>

const kept = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const

/** An object or template of a provider. */
export const wireObject = (doc: string) => s.of<UnknownObject>(kept).doc(doc)

export type WireMachine = OnTheWire<Machine>
export const wireMachine = s.of<WireMachine>(kept).doc('The Machine (cluster.x-k8s.io/v1beta2): metadata and spec.')

export type WireMachineSet = OnTheWire<MachineSet>
export const wireMachineSet = s.of<WireMachineSet>(kept).doc('The MachineSet (cluster.x-k8s.io/v1beta2): metadata and spec.')
