/**
 * Formats and parses bootstrap data. The controller of LocalBootstrapConfigs writes the data, and reads their expiry in order to renew them.
 * The controller of LocalMachines reads the data when a machine boots.
 */
import type { LocalBootstrapConfig } from '../kinds/local-bootstrap-config.ts'

type Spec = NonNullable<LocalBootstrapConfig['spec']>

/** `format` of the data Secret. Upstream: bootstrapv1.Format. */
export type BootstrapFormat = NonNullable<Spec['format']>

export interface BootstrapData {
  readonly role: 'control-plane' | 'worker'
  readonly clusterName: string
  readonly kubernetesVersion?: string
  /** Address of the API server, as `host:port`. */
  readonly controlPlaneEndpoint: string
  /**
   * Time in RFC 3339, after which no machine can join with the data. Absent for data that do not expire: data without a TTL, and data
   * created before the control plane is initialized, because the first control plane machine joins no existing cluster.
   */
  readonly expires?: string
  readonly nodeLabels: { readonly [key: string]: string }
  readonly nodeTaints: NonNullable<Spec['nodeTaints']>
}

/** Path of the file that the data create on the machine. */
const DataFile = '/etc/capstan/bootstrap.json'

/** Command that creates the sentinel file. The contract requires this file when bootstrapping has succeeded. */
const ReportSuccess = 'mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete'

interface CloudConfig {
  readonly write_files: readonly { readonly path: string; readonly permissions: string; readonly content: string }[]
  readonly runcmd: readonly string[]
}

/** The fields of Ignition's specification 2.3 that the data use. Upstream's kubeadm provider writes the same version. */
interface Ignition {
  readonly ignition: { readonly version: string }
  readonly storage: {
    readonly files: readonly {
      readonly filesystem: string
      readonly path: string
      readonly mode: number
      readonly contents: { readonly source: string }
    }[]
  }
  readonly systemd: { readonly units: readonly { readonly name: string; readonly enabled: boolean; readonly contents: string }[] }
}

/** First line of a cloud-config, which is YAML. The lines after it are written as JSON, which is valid YAML. */
const CloudConfigHeader = '#cloud-config\n'

const DataUrl = 'data:,'

const jsonText = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`

export function formatBootstrapData(data: BootstrapData, format: BootstrapFormat): string {
  const content = jsonText(data)
  if (format === 'cloud-config') {
    const config: CloudConfig = {
      write_files: [{ path: DataFile, permissions: '0600', content }],
      runcmd: [ReportSuccess],
    }
    return CloudConfigHeader + jsonText(config)
  }
  const service = [
    '[Service]\nType=oneshot',
    `ExecStart=/bin/sh -c '${ReportSuccess}'`,
    '[Install]\nWantedBy=multi-user.target\n',
  ].join('\n')
  const source = DataUrl + encodeURIComponent(content)
  const config: Ignition = {
    ignition: { version: '2.3.0' },
    storage: { files: [{ filesystem: 'root', path: DataFile, mode: 0o600, contents: { source } }] },
    systemd: { units: [{ name: 'capstan-bootstrap.service', enabled: true, contents: service }] },
  }
  return jsonText(config)
}

/** The fields that a kubelet needs to register its Node, and the expiry of the data. */
export type Registration = Pick<BootstrapData, 'nodeLabels' | 'nodeTaints' | 'expires'>

/**
 * Parses bootstrap data. Returns `undefined` without data, and for data in which the file of this provider is not found, such as data of
 * another provider; a machine then boots with defaults.
 * @throws Error when the content of this file is not JSON
 */
export function parseBootstrapData(value: string | undefined, format: string | undefined): Registration | undefined {
  const content = value === undefined ? undefined : fileIn(value, format)
  if (content === undefined) return undefined
  try {
    const { nodeLabels = {}, nodeTaints = [], expires } = JSON.parse(content) as Partial<BootstrapData>
    return { nodeLabels, nodeTaints, ...(expires === undefined ? {} : { expires }) }
  } catch {
    throw new Error(`Cannot read bootstrap data: ${DataFile} is not JSON`)
  }
}

/** Returns the content of the file that this provider writes; `undefined` if the data do not contain it or cannot be parsed. */
function fileIn(value: string, format: string | undefined): string | undefined {
  try {
    if (format === 'cloud-config' && value.startsWith(CloudConfigHeader)) {
      const { write_files: files } = JSON.parse(value.slice(CloudConfigHeader.length)) as CloudConfig
      return files.find(({ path }) => path === DataFile)?.content
    }
    if (format !== 'ignition') return undefined
    const { storage } = JSON.parse(value) as Ignition
    const source = storage.files.find(({ path }) => path === DataFile)?.contents.source
    return source?.startsWith(DataUrl) ? decodeURIComponent(source.slice(DataUrl.length)) : undefined
  } catch {
    return undefined
  }
}
