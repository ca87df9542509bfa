/** SampleControlPlane: a control plane that the infrastructure runs, without Machines. Contract: ControlPlane. */
import { Cluster, ClusterNameLabel, ClusterSecretType } from '@capstan/api'
import { type Controller, controller, type ReconcileContext, watches } from '@capstan/controller'
import {
  age,
  column,
  controllerReference,
  defineKind,
  hours,
  keyOf,
  keyText,
  type ObjectOf,
  orAbsent,
  s,
  Secret,
} from '@capstan/kube'
import { formatKubeconfig, issueCertificate, kubeconfigFor, makeAuthority } from '@capstan/kube/node'
import type { Cloud } from './cloud.ts'
import { byCluster, clusterMatters, labels, ofCluster, reconcileWith, templateOf } from './frame.ts'

const version = s.string({ minLength: 1, maxLength: 256 }).doc('Kubernetes version, such as v1.36.0.')

export const SampleControlPlane = defineKind({
  group: 'controlplane.sample.example.com',
  version: 'v1alpha1',
  kind: 'SampleControlPlane',
  plural: 'samplecontrolplanes',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'SampleControlPlane is the control plane of one Cluster.',
  labels,
  spec: s.object({ version }),
  status: s.object({
    initialization: s.object({ controlPlaneInitialized: s.boolean().optional() }).optional(),
    version: s.string().optional().doc('Kubernetes version of the running control plane.'),
    externalManagedControlPlane: s
      .boolean()
      .optional()
      .doc('Set to true once the control plane is initialized. True means that the control plane does not run on Machines.'),
    conditions: s.conditions(),
  }),
  columns: [
    column('Cluster', '.metadata.labels.cluster\\.x-k8s\\.io/cluster-name'),
    column('Version', '.status.version'),
    column('Initialized', '.status.initialization.controlPlaneInitialized', { type: 'boolean' }),
    age(),
  ],
})
export type SampleControlPlane = ObjectOf<typeof SampleControlPlane>

export const SampleControlPlaneTemplate = defineKind({
  group: 'controlplane.sample.example.com',
  version: 'v1alpha1',
  kind: 'SampleControlPlaneTemplate',
  plural: 'samplecontrolplanetemplates',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'SampleControlPlaneTemplate is the template from which SampleControlPlanes of a ClusterClass are created.',
  labels,
  spec: templateOf(s.object({})),
  columns: [age()],
})

const controlPlanes = byCluster(SampleControlPlane)

export const controlPlaneController = (cloud: Cloud): Controller =>
  controller({
    name: 'samplecontrolplane',
    for: SampleControlPlane,
    owns: [Secret],
    watches: [watches(Cluster, ofCluster(controlPlanes), clusterMatters)],
    reconcile: reconcileWith({
      kind: SampleControlPlane,
      ownerKind: Cluster,
      clusterNameOf: ({ metadata }: Cluster) => metadata.name,
      async provision(object, { cluster }, io) {
        if (!cluster.status?.initialization?.infrastructureProvisioned) return 'the infrastructure of the Cluster'
        if (!cluster.spec.controlPlaneEndpoint?.host) return 'spec.controlPlaneEndpoint of the Cluster'
        await cloud.ensureControlPlane(keyText(keyOf(object)), object.spec.version)
        await ensureSecrets(object, cluster, io)
        object.status = {
          ...object.status,
          initialization: { controlPlaneInitialized: true },
          version: object.spec.version,
          externalManagedControlPlane: true,
        }
        return undefined
      },
      remove: (object) => cloud.deleteControlPlane(keyText(keyOf(object))),
    }),
  })

/**
 * Does nothing if the Secret with the kubeconfig exists. Otherwise creates the Secret with the certificate authority, if it is missing, and
 * then the Secret with the kubeconfig, with which core connects to the workload cluster. Replace both with those of your control plane.
 */
async function ensureSecrets(object: SampleControlPlane, cluster: Cluster, io: ReconcileContext): Promise<void> {
  const { name, namespace } = cluster.metadata
  if (await orAbsent(io.client.get(Secret, { namespace: namespace!, name: `${name}-kubeconfig` }, { signal: io.signal }))) return
  const existing = await orAbsent(io.client.get(Secret, { namespace: namespace!, name: `${name}-ca` }, { signal: io.signal }))
  // An existing authority is kept: the user or an earlier reconcile created it.
  const authority = existing ? authorityIn(existing) : await makeAuthority(io.clock, { commonName: 'kubernetes' })
  const admin = await issueCertificate(authority, io.clock, {
    commonName: 'kubernetes-admin',
    organizations: ['system:masters'],
    usages: ['client'],
    validity: hours(24 * 365),
  })
  const { host, port } = cluster.spec.controlPlaneEndpoint!
  const kubeconfig = kubeconfigFor(name, {
    server: `https://${host}:${port}`,
    ca: authority.certificate,
    certificate: admin.certificate,
    key: admin.key,
  })
  if (!existing) await createSecret('ca', { 'tls.crt': authority.certificate, 'tls.key': authority.key })
  await createSecret('kubeconfig', { value: formatKubeconfig(kubeconfig) })

  async function createSecret(purpose: string, data: { readonly [key: string]: string }): Promise<void> {
    const secret = {
      metadata: {
        name: `${name}-${purpose}`,
        namespace: namespace!,
        labels: { [ClusterNameLabel]: name },
        ownerReferences: [controllerReference(object, SampleControlPlane)],
      },
      type: ClusterSecretType,
      data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
    }
    await io.client.create(Secret, secret, { signal: io.signal })
  }
}

function authorityIn({ data }: Secret): { certificate: string; key: string } {
  const text = (name: string) => Buffer.from(data?.[name] ?? '', 'base64').toString()
  return { certificate: text('tls.crt'), key: text('tls.key') }
}
