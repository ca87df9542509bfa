/** By rule, the cases of `interop/core-twin` that compare the required behavior of Capstan's core with upstream's. */
import type { CoreRuleId } from './core-rules.ts'

const states = ['true', 'false', 'unknown', 'true-without-reason', 'false-without-reason', 'nonsense']
const infrastructureReady = ['cluster-infrastructure-ready', 'cluster-old-infrastructure-ready'].flatMap((name) =>
  states.map((state) => `${name}-${state}`),
)
const controlPlaneAvailable = states.map((state) => `cluster-control-plane-available-${state}`)
const machineInfrastructure = ['true', 'false', 'unknown', 'nonsense'].map((state) => `machine-infrastructure-${state}`)

export const twinCases: { readonly [id in CoreRuleId]?: readonly string[] } = {
  'core.contract-version': ['cluster-old-infrastructure-ready-true', 'topology-old-contract'],
  'core.crd-name': ['cluster-unknown-kind'],
  'core.no-mutations': ['cluster-late-providers'],
  'core.infra-cluster.owner': ['cluster-late-providers', 'cluster-other-owner'],
  'core.infra-cluster.endpoint': ['cluster-endpoint-changes'],
  'core.infra-cluster.failure-domains': ['cluster-failure-domains'],
  'core.infra-cluster.initialization': ['cluster-late-providers', 'cluster-milestones-taken-back'],
  'core.infra-cluster.conditions': infrastructureReady,
  'core.infra-cluster.legacy-conditions': infrastructureReady,
  'core.infra-cluster.terminal-failures': ['cluster-failure'],
  'core.infra-cluster.externally-managed': ['cluster-managed-by-user'],
  'core.infra-cluster.pausing': ['cluster-paused', 'cluster-paused-by-annotation', 'cluster-paused-infrastructure'],
  'core.infra-machine.owner': ['machine-late-providers', 'owners-infrastructure-controlled'],
  'core.infra-machine.provider-id': ['machine-late-providers'],
  'core.infra-machine.failure-domain': ['machine-failure-domain'],
  'core.infra-machine.spec-failure-domain': ['machine-failure-domain'],
  'core.infra-machine.addresses': ['machine-addresses'],
  'core.infra-machine.initialization': ['machine-late-providers', 'machine-infrastructure-taken-back'],
  'core.infra-machine.conditions': machineInfrastructure,
  'core.infra-machine.legacy-conditions': machineInfrastructure,
  'core.infra-machine.terminal-failures': ['machine-infrastructure-failure'],
  'core.infra-machine.dry-run': ['topology-rotates-worker-machines', 'topology-rotates-control-plane-machines'],
  'core.infra-machine.pausing': ['machine-paused', 'machine-paused-references'],
  'core.infra-machine-pool.owner': ['machinepool-life', 'machinepool-late'],
  'core.infra-machine-pool.provider-id-list': ['machinepool-ids-of-nodes', 'machinepool-id-without-node'],
  'core.infra-machine-pool.replicas': ['machinepool-ids-of-nodes'],
  'core.infra-machine-pool.machine-kind': ['machinepool-machines'],
  'core.infra-machine-pool.conditions': ['machinepool-infrastructure-ready'],
  'core.infra-machine-pool.terminal-failures': ['machinepool-infrastructure-failure'],
  'core.infra-machine-pool.informational': ['machinepool-instances'],
  'core.infra-machine-pool.initialization': ['machinepool-life', 'machinepool-taken-back'],
  'core.infra-machine-pool.pausing': ['machinepool-paused'],
  'core.bootstrap-config.owner': ['machine-late-providers', 'owners-bootstrap-controlled'],
  'core.bootstrap-config.data-secret': ['machine-late-providers'],
  'core.bootstrap-config.initialization': ['machine-late-providers'],
  'core.bootstrap-config.conditions': ['machine-config-ready'],
  'core.bootstrap-config.legacy-conditions': ['machine-config-ready', 'machine-config-severity'],
  'core.bootstrap-config.taint': ['machine-life', 'machine-node-metadata'],
  'core.bootstrap-config.terminal-failures': ['machine-config-failure'],
  'core.bootstrap-config.dry-run': ['topology-rotates-configs'],
  'core.bootstrap-config.pausing': ['machine-paused', 'machine-paused-references'],
  'core.control-plane.owner': ['cluster-late-providers'],
  'core.control-plane.endpoint': ['cluster-control-plane-endpoint'],
  'core.control-plane.version': ['cluster-control-plane-versions'],
  'core.control-plane.terminal-failures': ['cluster-control-plane-failure'],
  'core.control-plane.legacy-conditions': states.map((state) => `cluster-old-control-plane-ready-${state}`),
  'core.control-plane.replicas': ['cluster-control-plane-replicas'],
  'core.control-plane.machine-template': ['topology-machine-fields-of-class', 'topology-machine-fields-of-cluster'],
  'core.control-plane.node-taints': ['machine-taints'],
  'core.control-plane.external-managed': ['machine-hosted-control-plane'],
  'core.in-place-update': ['hooks-update-machine'],
  'core.metadata-propagation': ['machinedeployment-in-place', 'topology-metadata'],
  'core.in-place-propagation': ['machinedeployment-in-place'],
  'core.control-plane.skew': ['topology-upgrade', 'topology-upgrade-stuck'],
  'core.control-plane.initialization': ['cluster-late-providers', 'cluster-milestones-taken-back'],
  'core.control-plane.conditions': controlPlaneAvailable,
  'core.control-plane.kubeconfig': ['unreachable-kubeconfig-missing', 'unreachable-kubeconfig-nonsense'],
  'core.control-plane.pausing': ['cluster-paused', 'cluster-paused-by-annotation'],
  'core.ipam.immutable-claim': ['admission-ipaddressclaim'],
  'core.ipam.immutable-address': ['admission-ipaddress'],
  'core.ipam.valid-address': ['admission-ipaddress'],
  'core.ipam.pool-of-claim': ['admission-ipaddress'],
  'core.ipam.defaults': ['admission-ipaddress', 'admission-ipaddressclaim'],
}

/** Rules without a case, with the reason or the suite that checks the rule instead. */
export const withoutTwinCase: { readonly [id in CoreRuleId]?: string } = {
  'core.rbac-aggregation':
    'core-twin starts both cores with all permissions. The suite `manifests` runs core with the roles of `capstan manifests`.',
  'core.watch-filter': 'core-twin starts each core once for all cases, without --namespace and --watch-filter.',
  'core.ipam.versions': 'The suite `conversion` compares conversions of generated IPAddressClaims and IPAddresses.',
}
