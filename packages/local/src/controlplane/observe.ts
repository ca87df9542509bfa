/** Reads the Machines of the control plane and their template. */
import { Cluster, Machine, MachineControlPlaneLabel } from '@capstan/api'
import { ensureOwner, type ReconcileContext } from '@capstan/controller'
import { controllerOf, isControlledBy, isDeleting, keyOf, ownerReference } from '@capstan/kube'
import { LocalControlPlane, machineTemplateOf } from '../kinds/local-control-plane.ts'
import { byCluster } from '../owner.ts'
import { referencedKind } from './machines.ts'
import type { ControlPlaneScope } from './scope.ts'

/**
 * Sets `workers` and `machines` of the scope: the names of the worker Machines, and the control plane Machines, oldest first.
 * @throws Error when the controller of a control plane Machine is not this LocalControlPlane
 */
export function observeMachines(scope: ControlPlaneScope, io: ReconcileContext): void {
  const { controlPlane, cluster } = scope
  const allMachines = io.cache.byIndex(machinesByCluster, `${cluster.metadata.namespace}/${cluster.metadata.name}`)
  const isControlPlane = ({ metadata }: Machine) => metadata.labels?.[MachineControlPlaneLabel] !== undefined
  const machines = allMachines.filter(isControlPlane).sort(byAge)
  scope.workers = allMachines.filter((machine) => !isControlPlane(machine)).map(({ metadata }) => metadata.name)
  scope.machines = machines.map((machine) => ({ machine, outdated: [] }))
  if (machines.some((machine) => controllerOf(machine) && !isControlledBy(machine, controlPlane, LocalControlPlane))) {
    throw new Error(
      'not all control plane machines are owned by this LocalControlPlane, refusing to operate in mixed management mode',
    )
  }
}

/** Sorts older Machines first, and Machines of the same age by name. */
function byAge({ metadata: a }: Machine, { metadata: b }: Machine): number {
  if (a.creationTimestamp === b.creationTimestamp) return a.name < b.name ? -1 : 1
  return a.creationTimestamp < b.creationTimestamp ? -1 : 1
}

/**
 * Sets `template` of the scope. Makes the Cluster an owner of the machine template, unless the template is being deleted, so that the template
 * is moved and deleted with the Cluster.
 */
export async function observeTemplate(scope: ControlPlaneScope, io: ReconcileContext): Promise<void> {
  const { controlPlane, cluster } = scope
  const ref = machineTemplateOf(controlPlane).spec.infrastructureRef
  const kind = referencedKind(ref, io)
  await io.watch(kind, ({ metadata }, cache) =>
    cache.byIndex(controlPlanesByTemplate, `${metadata.namespace}/${kind.kind}.${kind.group}/${metadata.name}`).map(keyOf),
  )
  const template = io.cache.peek(kind, { namespace: controlPlane.metadata.namespace!, name: ref.name })
  if (!template) {
    scope.template = { state: 'missing' }
    return
  }
  const owned = isDeleting(template) ? template : await ensureOwner(io, kind, template, ownerReference(cluster, Cluster))
  scope.template = { state: 'found', object: owned }
}

const machinesByCluster = byCluster(Machine)

const controlPlanesByTemplate = {
  name: 'localcontrolplanes by machine template',
  kind: LocalControlPlane,
  values: ({ metadata, spec }: LocalControlPlane): readonly string[] => {
    if (!spec.machineTemplate) return []
    const { apiGroup, kind, name } = spec.machineTemplate.spec.infrastructureRef
    return [`${metadata.namespace}/${kind}.${apiGroup}/${name}`]
  },
}
