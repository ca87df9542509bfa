/** Feature gates that can be disabled, and the admission rules of disabled gates. Upstream: feature, core/webhooks/admission, v1.14. */
import { Cluster, ClusterClass, ExtensionConfig, MachinePool } from '@capstan/api'
import { type Admission, admission, forbidden, isDeleting, type Kind, StatusError } from '@capstan/kube'

/** Names of the feature gates that can be disabled. */
export const SwitchableGates = ['ClusterTopology', 'MachinePool', 'RuntimeSDK'] as const

/** States of feature gates by name. An absent gate is enabled. */
export type FeatureGates = { readonly [gate in (typeof SwitchableGates)[number]]?: boolean }

/** Whether the deletion of a Cluster with a topology waits for BeforeClusterDelete. */
export const awaitsDeleteHook = ({ RuntimeSDK = true, ClusterTopology = true }: FeatureGates): boolean =>
  RuntimeSDK && ClusterTopology

/** The kind whose objects can be created and updated only if the gate is enabled. */
const kindOfGate = { ClusterTopology: ClusterClass, MachinePool, RuntimeSDK: ExtensionConfig } as const

/** Rejects objects and fields of disabled feature gates. Unlike upstream, a Cluster that is being deleted may keep its topology. */
export const featureGateAdmission = (gates: FeatureGates): Admission[] => [
  ...SwitchableGates.filter((gate) => gates[gate] === false).map((gate) =>
    admission({
      kind: kindOfGate[gate] as Kind,
      validate() {
        throw new StatusError('Forbidden', `spec: Forbidden: ${onlyWith(gate)}`)
      },
    }),
  ),
  ...(gates.ClusterTopology === false
    ? [
        admission<Cluster>({
          kind: Cluster,
          validate: (cluster) =>
            cluster.spec.topology && !isDeleting(cluster) ? [forbidden('spec.topology', onlyWith('ClusterTopology'))] : [],
        }),
      ]
    : []),
  ...(gates.RuntimeSDK === false
    ? [
        admission<ClusterClass>({
          kind: ClusterClass,
          validate: ({ spec: { patches = [] } }) =>
            patches.flatMap(({ external }, index) =>
              external
                ? [
                    forbidden(
                      `spec.patches[${index}].external`,
                      'patch.external can be used only if the RuntimeSDK feature flag is enabled',
                    ),
                  ]
                : [],
            ),
        }),
      ]
    : []),
]

const onlyWith = (gate: keyof FeatureGates): string => `can be set only if the ${gate} feature flag is enabled`
