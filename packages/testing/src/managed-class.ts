/** Creates a ClusterClass of the local provider that uses the handlers of an extension for patches, their validation, variables and upgrade plans. */
import type { ClusterClassPatch, ClusterClassSpec } from '@capstan/api'
import { ClusterClass } from '@capstan/api'
import type { Extension } from '@capstan/extension'
import type { Client, DeclaredKind } from '@capstan/kube'
import { localKinds } from '@capstan/local'

export interface ManagedClass {
  readonly name: string
  readonly namespace: string
  /** `spec.kubernetesVersions` of the class, unless the extension has a handler that plans upgrades. */
  readonly versions: readonly string[]
  readonly extension: Extension
  /** Name of the ExtensionConfig of the extension. */
  readonly extensionConfig: string
}

const infrastructure = 'infrastructure.capstan.dev/v1alpha1'
const controlPlane = 'controlplane.capstan.dev/v1alpha1'
const bootstrap = 'bootstrap.capstan.dev/v1alpha1'

/**
 * Creates the class with its templates. Infrastructure of Clusters and Machines is provisioned after half a second, so that the order of
 * events is always the same.
 */
export async function createManagedClass(client: Client, managedClass: ManagedClass): Promise<void> {
  const { name, namespace } = managedClass
  const template = async (kind: string, templateName: string, spec: object) => {
    const metadata = { name: templateName, namespace }
    await client.create(kinds.get(kind)!, { metadata, spec: { template: { spec } } } as never)
    return { kind, name: templateName, apiVersion: apiVersions[kind]! }
  }
  const machine = { simulated: { provisioningDelay: '500ms', nodeDelay: '300ms' } }
  const clusterTemplate = await template('LocalClusterTemplate', name, { simulated: { provisioningDelay: '500ms' } })
  const controlPlaneTemplate = await template('LocalControlPlaneTemplate', name, { simulated: { initializationDelay: '200ms' } })
  const controlPlaneMachine = await template('LocalMachineTemplate', `${name}-control-plane`, machine)
  const workerMachine = await template('LocalMachineTemplate', `${name}-worker`, machine)
  const workerBootstrap = await template('LocalBootstrapConfigTemplate', `${name}-worker`, {})
  const spec: ClusterClassSpec = {
    infrastructure: { templateRef: clusterTemplate, naming: { template: '{{ .cluster.name }}' } },
    controlPlane: {
      templateRef: controlPlaneTemplate,
      naming: { template: '{{ .cluster.name }}-control-plane' },
      machineInfrastructure: { templateRef: controlPlaneMachine },
    },
    workers: {
      machineDeployments: [
        {
          class: 'worker',
          naming: { template: '{{ .cluster.name }}-{{ .machineDeployment.topologyName }}' },
          bootstrap: { templateRef: workerBootstrap },
          infrastructure: { templateRef: workerMachine },
        },
      ],
    },
    ...upgrades(managedClass),
    ...patches(managedClass),
  }
  await client.create(ClusterClass, { metadata: { name, namespace }, spec })
}

const apiVersions: { readonly [kind: string]: string } = {
  LocalClusterTemplate: infrastructure,
  LocalMachineTemplate: infrastructure,
  LocalControlPlaneTemplate: controlPlane,
  LocalBootstrapConfigTemplate: bootstrap,
}

const kinds: ReadonlyMap<string, DeclaredKind> = new Map(localKinds.map((kind) => [kind.kind, kind]))

function upgrades(managedClass: ManagedClass): Pick<ClusterClassSpec, 'upgrade' | 'kubernetesVersions'> {
  const [planner] = handlersOf(managedClass, 'GenerateUpgradePlan')
  return planner === undefined
    ? { kubernetesVersions: [...managedClass.versions] }
    : { upgrade: { external: { generateUpgradePlanExtension: planner } } }
}

/**
 * Returns the patches of the class. Patch number n names handler number n of GeneratePatches, ValidateTopology and DiscoverVariables, where it
 * exists.
 */
function patches(managedClass: ManagedClass): Pick<ClusterClassSpec, 'patches'> {
  const generate = handlersOf(managedClass, 'GeneratePatches')
  const validate = handlersOf(managedClass, 'ValidateTopology')
  const discover = handlersOf(managedClass, 'DiscoverVariables')
  if (validate.length > generate.length) {
    const names = validate.slice(generate.length).join(', ')
    throw new Error(
      `core calls ${names} only for a patch that also names a handler of GeneratePatches: add such handlers to the extension`,
    )
  }
  const count = Math.max(generate.length, discover.length)
  const classPatches = Array.from({ length: count }, (_, index): ClusterClassPatch => {
    const [patch, validation, variables] = [generate[index], validate[index], discover[index]]
    const external = {
      ...(patch === undefined ? {} : { generatePatchesExtension: patch }),
      ...(validation === undefined ? {} : { validateTopologyExtension: validation }),
      ...(variables === undefined ? {} : { discoverVariablesExtension: variables }),
    }
    return { name: `extension-${index + 1}`, external }
  })
  return count === 0 ? {} : { patches: classPatches }
}

const handlersOf = ({ extension, extensionConfig }: ManagedClass, hook: string): string[] =>
  extension.handlers.filter((handler) => handler.hook.name === hook).map(({ name }) => `${name}.${extensionConfig}`)
