/**
 * Stub kinds of providers, and stub controllers that report every object, except templates, as initialized at once. The suite
 * `runtime-extension` tests the calls between core and the extension, which do not depend on the provider.
 */
import {
  type Client,
  CustomResourceDefinition,
  type Input,
  type Kind,
  keyOf,
  type KubeObject,
  systemClock,
  systemRandom,
  watchObjects,
} from '@capstan/kube'

export const stubGroup = 'stub.capstan.dev'
export const stubVersion = `${stubGroup}/v1`

const kindNamed = (kind: string): Kind<StubObject> => ({
  group: stubGroup,
  version: 'v1',
  kind,
  plural: `${kind.toLowerCase()}s`,
  scope: 'Namespaced',
})

export interface StubObject extends KubeObject {
  readonly spec?: { readonly [field: string]: unknown }
  readonly status?: { readonly [field: string]: unknown }
}

export const StubCluster = kindNamed('StubCluster')
export const StubControlPlane = kindNamed('StubControlPlane')
export const StubMachine = kindNamed('StubMachine')
const StubConfig = kindNamed('StubConfig')
export const StubMachineTemplate = kindNamed('StubMachineTemplate')
/** Template kinds to which a ClusterClass refers. */
export const templates = [
  ...['StubClusterTemplate', 'StubControlPlaneTemplate', 'StubConfigTemplate'].map(kindNamed),
  StubMachineTemplate,
]

const kinds = [StubCluster, StubControlPlane, StubMachine, StubConfig, ...templates]

/** CustomResourceDefinitions of all stub kinds. */
export const stubDefinitions = kinds.map(
  ({ kind, plural, scope }): Input<CustomResourceDefinition> & { metadata: { name: string } } => ({
    metadata: {
      name: `${plural}.${stubGroup}`,
      labels: { 'cluster.x-k8s.io/v1beta2': 'v1', 'cluster.x-k8s.io/provider': 'infrastructure-stub' },
    },
    spec: {
      group: stubGroup,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      scope,
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
              },
            },
          },
        },
      ],
    },
  }),
)

/**
 * Runs the stub controllers until `signal` aborts. As soon as an object exists, its controller writes a status: initialization is complete,
 * and a control plane has the version of its spec. Templates get no status.
 */
export async function runStubProviders(client: Client, signal: AbortSignal): Promise<void> {
  const reportStatus = async (kind: Kind<StubObject>, statusOf: (object: StubObject) => { [field: string]: unknown }) => {
    for await (const event of watchObjects(client, kind, { clock: systemClock, random: systemRandom, signal })) {
      const objects = event.kind === 'replaced' ? event.objects : event.kind === 'applied' ? [event.object] : []
      for (const object of objects) {
        const status = statusOf(object)
        if (JSON.stringify(object.status) === JSON.stringify(status)) continue
        // The object may have been deleted in the meantime.
        await client
          .patch(kind, keyOf(object), { type: 'merge', body: { status } as never }, { subresource: 'status' })
          .catch(() => undefined)
      }
    }
  }
  const ignoreError = () => undefined
  await Promise.all([
    reportStatus(StubCluster, () => ({ initialization: { provisioned: true } })).catch(ignoreError),
    reportStatus(StubControlPlane, ({ spec }) => ({
      initialization: { controlPlaneInitialized: true },
      ...(spec?.version === undefined ? {} : { version: spec.version }),
    })).catch(ignoreError),
    reportStatus(StubMachine, () => ({ initialization: { provisioned: true } })).catch(ignoreError),
    reportStatus(StubConfig, () => ({ initialization: { dataSecretCreated: true }, dataSecretName: 'none' })).catch(ignoreError),
  ])
}
