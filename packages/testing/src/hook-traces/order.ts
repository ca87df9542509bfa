/**
 * Checks the order of writes and lifecycle hooks: preconditions of each call, and the hooks that must have allowed core to proceed
 * before an object is written.
 */
import { Cluster, Machine, MachineDeployment } from '@capstan/api'
import type { Change, Store } from '@capstan/apiserver'
import { isDeleting, isTrue, type Kind, resourceName } from '@capstan/kube'
import { LocalBootstrapConfigTemplate, LocalCluster, LocalControlPlane, LocalMachine, LocalMachineTemplate } from '@capstan/local'
import { deploymentOf, isOfTopology, machinesOf, type ClusterState, clusterStateIn, clusterStateText } from './cluster-state.ts'

/**
 * The versions of the Cluster in the scenarios of `story.ts`: it is created with the first version, then control plane and workers are
 * upgraded to each of the others.
 */
export const Versions = ['v1.34.0', 'v1.35.0', 'v1.36.0'] as const
const [First, , Last] = Versions

/** A hook call whose preconditions `OrderChecker` checks. */
export interface CheckedCall {
  readonly hook: string
  /** The version in the request; empty if there is none. */
  readonly version: string
  /** The version from which the request upgrades. If the request has no such field: the version before `version` in `Versions`, or empty. */
  readonly from: string
}

type Rule = readonly [sentence: string, holds: (state: ClusterState, call: CheckedCall) => boolean]

const allObjectsExist: Rule = [
  'control plane, workers and infrastructure exist',
  ({ infrastructure, controlPlane, deployments }) =>
    infrastructure !== undefined && controlPlane !== undefined && deployments.size >= 2,
]
const versionText = { version: 'the new version', from: 'the previous version' }
const controlPlaneIs = (which: 'version' | 'from'): Rule => [
  `the control plane and its Machines have ${versionText[which]}`,
  (state, call) =>
    state.controlPlane?.spec.version === call[which] &&
    state.controlPlane.status?.version === call[which] &&
    machinesOf(state, undefined).every(({ spec }) => spec.version === call[which]),
]
const workersAre = (which: 'version' | 'from'): Rule => [
  `all MachineDeployments and their Machines have ${versionText[which]}`,
  (state, call) =>
    [...state.deployments].every(
      ([name, { spec }]) =>
        spec.template.spec.version === call[which] &&
        machinesOf(state, name).every((machine) => machine.spec.version === call[which]),
    ),
]
const noNewerMachine: Rule = [
  'no Machine has a later version',
  (state, { version }) => state.machines.every(({ spec }) => spec.version! <= version),
]
/** `story.ts` adds the MachineDeployment `late` to the topology when it changes the version. */
const noLateWorkers: Rule = ['the MachineDeployment "late" does not exist', ({ deployments }) => !deployments.has('late')]
/** The initial templates: one for control plane Machines, and two for each of two MachineDeployments. */
const noNewTemplates: Rule = ['no template was added', ({ templates }) => templates.length === 5]
const notDeleting: Rule = ['the Cluster is not being deleted', ({ cluster }) => cluster !== undefined && !isDeleting(cluster)]

/** Preconditions of each hook call. */
const preconditions: { readonly [hook: string]: readonly Rule[] } = {
  BeforeClusterCreate: [
    [
      'the Cluster exists, and refers to no infrastructure and no control plane',
      ({ cluster }) => cluster !== undefined && !cluster.spec.infrastructureRef && !cluster.spec.controlPlaneRef,
    ],
    [
      'no object was created for the Cluster',
      ({ infrastructure, controlPlane, deployments, machines, templates }) =>
        !infrastructure && !controlPlane && deployments.size + machines.length + templates.length === 0,
    ],
    notDeleting,
  ],
  AfterControlPlaneInitialized: [
    allObjectsExist,
    ['the control plane is initialized', ({ cluster }) => isTrue(cluster!, 'ControlPlaneInitialized')],
    ['the control plane has a Machine', (state) => machinesOf(state, undefined).length > 0],
    notDeleting,
  ],
  BeforeClusterUpgrade: [allObjectsExist, controlPlaneIs('from'), workersAre('from'), noLateWorkers, noNewTemplates, notDeleting],
  BeforeControlPlaneUpgrade: [allObjectsExist, controlPlaneIs('from'), workersAre('from'), noLateWorkers, notDeleting],
  AfterControlPlaneUpgrade: [allObjectsExist, controlPlaneIs('version'), workersAre('from'), noLateWorkers, notDeleting],
  BeforeWorkersUpgrade: [allObjectsExist, controlPlaneIs('version'), workersAre('from'), noLateWorkers, notDeleting],
  AfterWorkersUpgrade: [allObjectsExist, controlPlaneIs('version'), workersAre('version'), noNewerMachine, notDeleting],
  AfterClusterUpgrade: [
    allObjectsExist,
    controlPlaneIs('version'),
    workersAre('version'),
    ['the MachineDeployment "late" exists', ({ deployments }) => deployments.has('late')],
    notDeleting,
  ],
  BeforeClusterDelete: [
    allObjectsExist,
    [
      'the Cluster is being deleted, and none of its objects is',
      ({ cluster, infrastructure, controlPlane, deployments, machines }) =>
        isDeleting(cluster!) &&
        [infrastructure!, controlPlane!, ...deployments.values(), ...machines].every((object) => !isDeleting(object)),
    ],
  ],
}

/** Records responses, and violations of the order by writes or calls. */
export class OrderChecker {
  readonly violations: string[] = []
  readonly #store: Store
  /** Calls, as `textOf` formats them, that have allowed core to proceed. */
  readonly #allowed = new Set<string>()
  /** Calls, as `textOf` formats them, whose last response did not allow core to proceed. */
  readonly #blocking = new Set<string>()
  readonly #removedHooks = new Set<string>()
  readonly #subscriptions: (() => void)[] = []

  constructor(store: Store) {
    this.#store = store
    for (const kind of watchedKinds)
      this.#subscriptions.push(store.subscribe(resourceName(kind), (change) => this.#checkWrite(kind, change)))
  }

  /** Checks the preconditions of a call. */
  checkCall(call: CheckedCall): void {
    const state = clusterStateIn(this.#store)
    for (const [sentence, holds] of preconditions[call.hook]!) {
      if (!holds(state, call))
        this.violations.push(`${textOf(call)} called without its precondition: ${sentence} (${clusterStateText(state)})`)
    }
    const { hook, version, from } = call
    const preceding = precedingCalls[hook]?.(version, from) ?? []
    this.#requireAllowed(`${textOf(call)} called`, preceding)
  }

  /** Records the response to a call. `proceeds`: whether the response allows core to proceed. */
  recordResponse(call: CheckedCall, proceeds: boolean): void {
    if (proceeds) {
      this.#allowed.add(textOf(call))
      this.#blocking.delete(textOf(call))
    } else this.#blocking.add(textOf(call))
  }

  /** Records that the last handler of the hook was removed: the hook then blocks nothing. */
  recordRemoval(hook: string): void {
    this.#removedHooks.add(hook)
    for (const blockingCall of this.#blocking) if (blockingCall.split(' ')[0] === hook) this.#blocking.delete(blockingCall)
  }

  /** Stops checking writes. */
  end(): void {
    for (const unsubscribe of this.#subscriptions) unsubscribe()
  }

  #hasAllowed({ hook, version }: Pick<CheckedCall, 'hook' | 'version'>): boolean {
    return this.#removedHooks.has(hook) || this.#allowed.has(textOf({ hook, version }))
  }

  #requireAllowed(event: string, requiredCalls: readonly (readonly [hook: string, version: string])[]): void {
    for (const [hook, version] of requiredCalls) {
      if (!this.#hasAllowed({ hook, version })) this.violations.push(`${event} before ${textOf({ hook, version })} allowed it`)
    }
  }

  #checkWrite(kind: Kind, { previous, object }: Change): void {
    if (!object) return
    const objectText = `${kind.kind} ${object.metadata.name}`
    if (isDeleting(object) && !(previous && isDeleting(previous)) && this.#clusterIsDeleting) {
      if (kind !== (Cluster as Kind)) this.#requireAllowed(`${objectText} deleted`, [['BeforeClusterDelete', '']])
    }
    if (!previous && isOfTopology(object)) {
      this.#requireAllowed(`${objectText} created`, [['BeforeClusterCreate', '']])
      for (const blockingCall of this.#blocking) {
        const [hook = '', version] = blockingCall.split(' ')
        // After the last step, the upgrade no longer postpones the creation of objects.
        if (hook === 'AfterWorkersUpgrade' && version === Last) continue
        if (BlockCreation.has(hook)) this.violations.push(`${objectText} created while ${blockingCall} blocks`)
      }
    }
    if (kind === (LocalControlPlane as Kind))
      this.#checkControlPlane(previous as LocalControlPlane | undefined, object as LocalControlPlane)
    if (kind === (MachineDeployment as Kind))
      this.#checkDeployment(previous as MachineDeployment | undefined, object as MachineDeployment)
    if (kind === (Machine as Kind) && !previous) this.#checkMachine(object as Machine)
  }

  #checkControlPlane(previous: LocalControlPlane | undefined, { spec: { version } }: LocalControlPlane): void {
    const from = previous?.spec.version
    if (from === undefined || from === version) return
    const event = `control plane got ${version}`
    this.#requireAllowed(event, [
      ['BeforeClusterUpgrade', Last],
      ['BeforeControlPlaneUpgrade', version],
    ])
    if (from === First) return
    this.#requireAllowed(event, [
      ['AfterControlPlaneUpgrade', from],
      ['BeforeWorkersUpgrade', from],
      ['AfterWorkersUpgrade', from],
    ])
  }

  #checkDeployment(previous: MachineDeployment | undefined, object: MachineDeployment): void {
    const version = object.spec.template.spec.version!
    if (version === First || previous?.spec.template.spec.version === version) return
    this.#requireAllowed(`${deploymentOf(object)} got ${version}`, [
      ['AfterControlPlaneUpgrade', version],
      ['BeforeWorkersUpgrade', version],
    ])
  }

  #checkMachine(machine: Machine): void {
    const deployment = deploymentOf(machine)
    const { controlPlane, deployments } = clusterStateIn(this.#store)
    const expectedVersion =
      deployment === undefined ? controlPlane?.spec.version : deployments.get(deployment)?.spec.template.spec.version
    if (machine.spec.version !== expectedVersion)
      this.violations.push(`Machine of ${deployment ?? 'the control plane'} has ${machine.spec.version}, not ${expectedVersion}`)
  }

  get #clusterIsDeleting(): boolean {
    const [cluster] = this.#store.list(resourceName(Cluster))
    return cluster !== undefined && isDeleting(cluster)
  }
}

const watchedKinds = [
  Cluster,
  LocalCluster,
  LocalControlPlane,
  LocalMachine,
  LocalMachineTemplate,
  LocalBootstrapConfigTemplate,
  MachineDeployment,
  Machine,
] as unknown as readonly Kind[]

/**
 * Hooks of an upgrade. While one of them blocks, core creates no object of the topology. Exception: AfterWorkersUpgrade of the last version
 * does not postpone the creation.
 */
const BlockCreation = new Set([
  'BeforeClusterUpgrade',
  'BeforeControlPlaneUpgrade',
  'AfterControlPlaneUpgrade',
  'BeforeWorkersUpgrade',
  'AfterWorkersUpgrade',
])

/** By hook: the calls that must have allowed core to proceed before the hook is called. A hook without an entry requires no call. */
const precedingCalls: {
  readonly [hook: string]: (version: string, from: string) => readonly (readonly [hook: string, version: string])[]
} = {
  AfterControlPlaneInitialized: () => [['BeforeClusterCreate', '']],
  BeforeControlPlaneUpgrade: (_, from) => [
    ['BeforeClusterUpgrade', Last],
    ...(from === First ? [] : ([['AfterWorkersUpgrade', from]] as const)),
  ],
  AfterControlPlaneUpgrade: (version) => [['BeforeControlPlaneUpgrade', version]],
  BeforeWorkersUpgrade: (version) => [['AfterControlPlaneUpgrade', version]],
  AfterWorkersUpgrade: (version) => [['BeforeWorkersUpgrade', version]],
  AfterClusterUpgrade: (version) => [['AfterWorkersUpgrade', version]],
}

/** Formats a call, for example `BeforeClusterUpgrade v1.36.0`; without a version, only the hook. */
export const textOf = ({ hook, version }: Pick<CheckedCall, 'hook' | 'version'>): string =>
  version === '' ? hook : `${hook} ${version}`
