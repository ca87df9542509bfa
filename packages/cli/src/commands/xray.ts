import {
  type ContractName,
  OwnerKinds,
  type ProviderKind,
  providerManifests,
  type FieldValue,
  xray,
  type Xray,
} from '@capstan/conformance'
import {
  type Client,
  CustomResourceDefinition,
  kindFinder,
  type KubeObject,
  type ObjectKey,
  orAbsent,
  parseKey,
  type UnknownObject,
  unknownKind,
} from '@capstan/kube'
import { Command, Option } from 'commander'
import { type Io, UsageError } from '../io.ts'
import { type ManagementOptions, withKubeconfig, withManagement } from '../management.ts'
import { table } from '../output/table.ts'

interface Options extends ManagementOptions {
  readonly namespace: string
  readonly output: 'table' | 'json'
}

/** `capstan xray KIND/NAME`: explains what core reads from a provider's object, and the consequences. */
export const xrayCommand = (io: Io): Command =>
  withKubeconfig(new Command('xray'))
    .description(
      'Show what core reads from one object of a provider: contract version, each path, and the values that core copied',
    )
    .argument('<object>', 'KIND/NAME, where KIND may be followed by its group: LocalMachine.infrastructure.capstan.dev/demo')
    .option('-n, --namespace <namespace>', 'namespace of the object', 'default')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['table', 'json']).default('table'))
    .action((object: string, options: Options) =>
      withManagement(io, options, async (client) => {
        const result = await explain(client, object, options.namespace, io.signal)
        for (const line of options.output === 'json' ? [JSON.stringify(result, undefined, 2)] : outputLines(result)) io.out(line)
      }),
    )

async function explain(client: Client, object: string, namespace: string, signal: AbortSignal): Promise<Xray> {
  const slash = object.indexOf('/')
  if (slash <= 0 || slash === object.length - 1) {
    throw new UsageError(`${object}: expected KIND/NAME`, 'For example: capstan xray LocalMachine/demo')
  }
  const provider = await providerKind(client, object.slice(0, slash), signal)
  const key = { namespace, ...parseKey(object.slice(slash + 1)) }
  const { group, names } = provider.crd.spec
  const objects = new Map<string, UnknownObject>()
  for (const { name, served } of provider.crd.spec.versions) {
    if (!served) continue
    const kind = unknownKind({ apiVersion: `${group}/${name}`, kind: names.kind, plural: names.plural })
    objects.set(name, await client.get(kind, key, { signal }))
  }
  if (objects.size === 0) throw new Error(`CustomResourceDefinition ${provider.crd.metadata.name} serves no version`)
  return xray({ provider, objects, owner: await ownerOf(client, provider.contract, objects.values().next().value!, signal) })
}

/**
 * Finds a provider's kind by name.
 *
 * @throws UsageError when no kind or several kinds have the name, or the kind is a template or belongs to no contract
 */
async function providerKind(client: Client, name: string, signal: AbortSignal): Promise<ProviderKind> {
  const { items } = await client.list(CustomResourceDefinition, { signal })
  const definitions = items.filter(({ metadata, spec: { group, names } }) =>
    [names.kind, names.plural, names.singular, `${names.kind}.${group}`, metadata.name, ...(names.shortNames ?? [])]
      .map((alias) => alias?.toLowerCase())
      .includes(name.toLowerCase()),
  )
  if (definitions.length === 0)
    throw new UsageError(`no CustomResourceDefinition has the kind ${name}`, 'kubectl get crds lists them.')
  if (definitions.length > 1) {
    throw new UsageError(`${name} is ambiguous: ${definitions.map(({ metadata }) => metadata.name).join(', ')}`, 'Add the group.')
  }
  // API servers omit apiVersion and kind from the items of a list.
  const crd = { ...definitions[0]!, apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' }
  const [kind] = providerManifests([{ object: crd as never, file: '', line: 1 }], { isRendered: false }).kinds
  if (!kind || kind.isTemplate) {
    throw new UsageError(
      `${name} is no kind of a provider contract`,
      'Contracts: InfraCluster, InfraMachine, InfraMachinePool, BootstrapConfig, ControlPlane; templates are not supported.',
    )
  }
  return kind
}

/** Returns the core object that owns the provider's object; `undefined` when there is none. */
async function ownerOf(
  client: Client,
  contract: ContractName,
  { metadata }: UnknownObject,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const owner = metadata.ownerReferences?.find(
    ({ kind, apiVersion }) => OwnerKinds[contract].includes(kind) && apiVersion.startsWith('cluster.x-k8s.io/'),
  )
  if (!owner) return undefined
  const find = kindFinder(client)
  // `xray` reads the owner's fields in v1beta2, the storage version of core.
  const kind = await find({ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: owner.kind }, signal)
  const key: ObjectKey = { ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }), name: owner.name }
  const object = await orAbsent(client.get(kind, key, { signal }))
  return object && { ...object, kind: owner.kind }
}

const valueLengthLimit = 48

function formatFieldValue({ value, error }: FieldValue): string {
  if (error !== undefined) return 'cannot be read'
  if (value === undefined) return '-'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > valueLengthLimit ? `${text.slice(0, valueLengthLimit - 1)}…` : text
}

function outputLines({ object, contract, contractVersion, apiVersion, reason, owner, rows }: Xray): string[] {
  const mark = (version: string) => (version === contractVersion ? `${version.toUpperCase()} (CHOSEN)` : version.toUpperCase())
  return [
    `${object}: ${contract}${contractVersion ? `, contract ${contractVersion}, read as ${apiVersion}` : ''}`,
    `because  ${reason}`,
    `owner    ${owner ?? 'none: no core object refers to this object, or core has not set the owner reference yet'}`,
    '',
    ...table(
      ['', 'FIELD', mark('v1beta2'), 'VALUE', mark('v1beta1'), 'VALUE', 'CORE'],
      rows.map(({ name, versions: { v1beta2, v1beta1 }, conclusion, isPending }) => [
        isPending ? '!' : '',
        name,
        v1beta2.path,
        formatFieldValue(v1beta2),
        v1beta1.path,
        formatFieldValue(v1beta1),
        conclusion,
      ]),
    ),
  ]
}
