/** Generates the table "implemented / not yet" of README.md. A feature counts as implemented if a declaration of it exists. */
import { coreKinds } from '@capstan/api'
import * as hooks from '@capstan/api/hooks'
import { localKinds } from '@capstan/local'
import { commandNames } from '../packages/cli/src/program.ts'

/** Kinds of upstream's core provider, release v1.14: the files of core/config/crd/bases. */
const upstreamKinds = [
  'Cluster',
  'ClusterClass',
  'Machine',
  'MachineSet',
  'MachineDeployment',
  'MachinePool',
  'MachineHealthCheck',
  'MachineDrainRule',
  'ClusterResourceSet',
  'ClusterResourceSetBinding',
  'IPAddress',
  'IPAddressClaim',
  'ExtensionConfig',
]

/** Hooks of upstream's catalog, release v1.14. */
const upstreamHooks = [
  'Discovery',
  'BeforeClusterCreate',
  'AfterControlPlaneInitialized',
  'BeforeClusterUpgrade',
  'BeforeControlPlaneUpgrade',
  'AfterControlPlaneUpgrade',
  'BeforeWorkersUpgrade',
  'AfterWorkersUpgrade',
  'AfterClusterUpgrade',
  'BeforeClusterDelete',
  'GenerateUpgradePlan',
  'GeneratePatches',
  'ValidateTopology',
  'DiscoverVariables',
  'CanUpdateMachine',
  'CanUpdateMachineSet',
  'UpdateMachine',
]

/** Contracts of upstream's book, except those of IPAM and clusterctl, with the kind of the local provider that implements each. */
const contracts: readonly [contract: string, kind: string][] = [
  ['InfraCluster', 'LocalCluster'],
  ['InfraMachine', 'LocalMachine'],
  ['InfraMachinePool', 'LocalMachinePool'],
  ['BootstrapConfig', 'LocalBootstrapConfig'],
  ['ControlPlane', 'LocalControlPlane'],
]

/** Existing and planned commands. The table lists those that do not exist as "not yet". */
const listedCommands = [...commandNames, 'manifests', 'doctor', 'lint', 'conform', 'xray', 'plan', 'explain']

export function statusTable(): string {
  const kinds = new Set(coreKinds.map(({ kind }) => kind))
  const local = new Set(localKinds.map(({ kind }) => kind))
  const rows = [
    row('Kinds of the core provider', upstreamKinds, (kind) => kinds.has(kind)),
    row('Hooks of the Runtime SDK', upstreamHooks, (hook) => hook in hooks),
    row(
      'Contracts, each with a reference provider',
      contracts.map(([contract]) => contract),
      (contract) => local.has(contracts.find(([name]) => name === contract)![1]),
    ),
    row('Commands of `capstan`', [...new Set(listedCommands)], (command) => commandNames.includes(command)),
  ]
  return ['| | implemented | not yet |', '| --- | --- | --- |', ...rows].join('\n')
}

function row(title: string, all: readonly string[], isImplemented: (name: string) => boolean): string {
  const [implemented, missing] = [all.filter(isImplemented), all.filter((name) => !isImplemented(name))]
  return `| ${title} | ${listed(implemented)} | ${listed(missing)} |`
}

const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ')
