/**
 * Kinds of the stub providers: one API group for each contract version, and two kinds of the kubeadm bootstrap provider. No provider runs:
 * `side.ts` writes spec and status of the objects that have a `Role`.
 */
import { type CustomResourceDefinition, type Input, type Kind, type KubeObject } from '@capstan/kube'

export interface StubObject extends KubeObject {
  readonly spec?: { readonly [field: string]: unknown }
  readonly status?: { readonly [field: string]: unknown }
}

/** Part of a Cluster that a stub provider implements. `config` is the bootstrap config. */
export type Role = 'cluster' | 'controlPlane' | 'machine' | 'config'

/** Kinds of the stub providers of one contract version. */
export interface StubKinds {
  readonly group: string
  readonly contract: 'v1beta1' | 'v1beta2'
  readonly cluster: Kind<StubObject>
  readonly controlPlane: Kind<StubObject>
  readonly machine: Kind<StubObject>
  readonly config: Kind<StubObject>
  readonly clusterTemplate: Kind<StubObject>
  readonly controlPlaneTemplate: Kind<StubObject>
  readonly machineTemplate: Kind<StubObject>
  readonly configTemplate: Kind<StubObject>
  readonly remediation: Kind<StubObject>
  readonly remediationTemplate: Kind<StubObject>
}

const kindsOf = (group: string, contract: StubKinds['contract']): StubKinds => {
  const kind = (name: string): Kind<StubObject> => ({
    group,
    version: 'v1',
    kind: name,
    plural: `${name.toLowerCase()}s`,
    scope: 'Namespaced',
  })
  return {
    group,
    contract,
    cluster: kind('StubCluster'),
    controlPlane: kind('StubControlPlane'),
    machine: kind('StubMachine'),
    config: kind('StubConfig'),
    clusterTemplate: kind('StubClusterTemplate'),
    controlPlaneTemplate: kind('StubControlPlaneTemplate'),
    machineTemplate: kind('StubMachineTemplate'),
    configTemplate: kind('StubConfigTemplate'),
    remediation: kind('StubRemediation'),
    remediationTemplate: kind('StubRemediationTemplate'),
  }
}

/** Kinds of contract v1beta2. */
export const stub = kindsOf('twin.capstan.dev', 'v1beta2')
/** Kinds of contract v1beta1. */
export const oldStub = kindsOf('old.twin.capstan.dev', 'v1beta1')

/**
 * Kinds that core treats as those of the kubeadm bootstrap provider, because of their group and names. `side.ts` does not write spec and
 * status of their objects.
 */
export const kubeadmStub = {
  config: kubeadmKind('KubeadmConfig'),
  configTemplate: kubeadmKind('KubeadmConfigTemplate'),
}

function kubeadmKind(kind: string): Kind<StubObject> {
  return { group: 'bootstrap.cluster.x-k8s.io', version: 'v1', kind, plural: `${kind.toLowerCase()}s`, scope: 'Namespaced' }
}

export const kindList = ({ group: _group, contract: _contract, ...kinds }: StubKinds): Kind<StubObject>[] => Object.values(kinds)

const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const

const definitionsOf = (
  kinds: readonly Kind<StubObject>[],
  contract: StubKinds['contract'],
): (Input<CustomResourceDefinition> & { metadata: { name: string } })[] =>
  kinds.map(({ group, kind, plural, scope }) => ({
    metadata: {
      name: `${plural}.${group}`,
      labels: { [`cluster.x-k8s.io/${contract}`]: 'v1', 'cluster.x-k8s.io/provider': 'infrastructure-twin' },
    },
    spec: {
      group,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      scope,
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: anything, status: anything } } },
        },
      ],
    },
  }))

/** CustomResourceDefinitions of all stub kinds. */
export const stubDefinitions = [
  ...[stub, oldStub].flatMap((kinds) => definitionsOf(kindList(kinds), kinds.contract)),
  ...definitionsOf(Object.values(kubeadmStub), 'v1beta2'),
]
