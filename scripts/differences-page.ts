import { explained } from '../interop/core-twin/explained.ts'

/** Situations in which upstream's core never stops writing, with the tests of Capstan's behaviour. */
const writesWithoutEnd = [
  'An extension responds to the same `GeneratePatches` request with different patches each time. Upstream replaces templates and Machines in each reconcile. Capstan does so five times in ten minutes; then `TopologyReconciled` reports the extension, and nothing changes until two responses in sequence are equal (`patch-responses.test.ts`, `failing-inputs.env.test.ts`).',
  'Naming templates of a class render the same name for two MachineDeployments or MachinePools of a topology. Upstream writes the object of this name for one of them, then for the other, and so on. Capstan reports the name in `TopologyReconciled` (`failing-inputs.env.test.ts`).',
]

/** Intended differences that no case of core-twin produces. Many need a crash between two writes, a failing peer, or a certain timing. */
const notScripted = [
  'A blocking response of a hook is void as soon as the request, the extension or its configuration changes, and survives a restart. Core records that a hook has allowed it to proceed before it does anything else ([ADR 22](../adr/0022-validity-of-hook-responses.md)). Upstream waits until a blocking response expires, keeps it in memory only, and calls BeforeClusterCreate again after a crash during the creation.',
  'A failed call of `AfterControlPlaneInitialized` blocks nothing else, and is repeated ([ADR 6](../adr/0006-topology-without-shim.md)). Upstream reconciles nothing else of the topology before the call succeeds.',
  'A failure that depends only on stored objects is not retried until one of these objects changes ([ADR 6](../adr/0006-topology-without-shim.md)).',
  'Default values of variables are stored on the Cluster before anything is created from them. Upstream stores them at the end of the reconcile, so that objects can exist although their values are not stored.',
  '`ValidateTopology` of a patch gets the variables that are defined for this patch, as `GeneratePatches` does. Upstream sends the variables of the last patch of the class to all patches.',
  'A MachineHealthCheck without the label `topology.cluster.x-k8s.io/owned` that has the name of a control plane or MachineDeployment of a topology is not deleted. Upstream deletes it when the topology defines no health check for this object, and with the MachineDeployment.',
  'The topology controller does not update a MachinePool that is being deleted, and does not read its bootstrap config and infrastructure. Upstream stops reconciling the whole topology once the infrastructure of the pool is deleted.',
  'Updates of a Cluster that is being deleted are not validated against its class, so that its finalizers can be removed after the class was deleted.',
  'With the feature gate `ClusterTopology` disabled, a Cluster with a topology can be deleted: updates are accepted while it is being deleted. Upstream rejects the removal of its finalizer.',
  'An update in place waits while the infrastructure machine or the bootstrap config of the Machine cannot be read. Upstream reports that there is no infrastructure machine, or calls UpdateMachine without the bootstrap config.',
  'If the schema of a variable of a ClusterClass has several errors, they may be listed in another order. Upstream lists those of properties in random order, and omits most others if the structure or a default value of the schema is wrong.',
  'A changed or deleted kubeconfig Secret of a Cluster replaces or closes the connection to the workload cluster at once. Upstream does not watch the Secret, and keeps the connection until it fails.',
  'If the status of an ExtensionConfig cannot be written, the handlers of the last recorded discovery stay registered. Without a recorded discovery, the hooks of the Clusters that the ExtensionConfig selects fail. Upstream skips the handlers of an ExtensionConfig without a recorded discovery, and its manager ends if the write fails for a minute after the start.',
  'With `--watch-filter`, an ExtensionConfig that lacks the label of the filter is also discovered again every ten minutes, if it existed when the manager started.',
  'Two definitions of a variable do not conflict if they differ only in the order of JSON members or in white space.',
  'If the version of a MachineDeployment or MachinePool of a topology was removed, it is set to the version of the topology. Upstream fails.',
  'A ClusterResourceSet that applies its resources to several Clusters reports the first failure, in the order of the names of the Clusters. Upstream reports the result of the last Cluster, so a failure can be hidden.',
  'Whether a MachinePool is upgrading is read from its `status.versions`. Upstream reads each Node, and reconciles no topology with a MachinePool while the workload cluster is unreachable or one of the Nodes has been deleted.',
  'If the write of one Machine of a MachineSet fails, the other Machines are still written.',
  'When a ClusterResourceSet is deleted, it is removed from the bindings of all Clusters that it selects. Upstream stops at the first Cluster without a binding.',
  'Status changes on which no controller acts are written up to two seconds later on a busy server ([ADR 49](../adr/0049-statuses-that-only-report-are-postponed.md)).',
]

/** Generates docs/reference/differences.md: intended differences of Capstan's core from upstream's. */
export const differencesPage = (): string =>
  [
    '<!-- Made by npm run gen from interop/core-twin/explained.ts and scripts/differences-page.ts. -->',
    '# Differences from upstream',
    '',
    "`npm run interop -- core-twin` runs upstream's core manager (v1.14) and Capstan's on the same cases and compares every object, Event",
    'and response. The differences in this table are intended; any other difference in a case is a bug.',
    '',
    '| difference | reason | what you see |',
    '| --- | --- | --- |',
    ...explained.map(({ what, reason, effect }) => `| ${what} | ${reason} | ${effect} |`),
    '',
    "In two situations upstream's core never stops writing, so that no case can compare the results:",
    '',
    ...writesWithoutEnd.map((text) => `- ${text}`),
    '',
    'Other intended differences, which no case produces. Many of them need a crash between two writes, a failing peer, or a certain timing:',
    '',
    ...notScripted.map((text) => `- ${text}`),
    '',
  ].join('\n')
