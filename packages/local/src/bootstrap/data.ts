/** Bootstrap data: written by a LocalBootstrapConfig, read by a LocalMachine. */
import type { LocalBootstrapConfig } from '../kinds/local-bootstrap-config.ts'

/** `format` of the data secret. A machine that gets data of another format boots with defaults, as from any other image. */
export const BootstrapFormat = 'capstan'

export interface BootstrapData {
  readonly role: 'control-plane' | 'worker'
  readonly clusterName: string
  readonly kubernetesVersion?: string
  /** Address of the API server, as `host:port`. */
  readonly controlPlaneEndpoint: string
  readonly nodeLabels: { readonly [key: string]: string }
  readonly nodeTaints: NonNullable<NonNullable<LocalBootstrapConfig['spec']>['nodeTaints']>
}

export const formatBootstrapData = (data: BootstrapData): string => `${JSON.stringify(data, undefined, 2)}\n`

/** The parts of the data with which a kubelet registers its Node. */
export type Registration = Pick<BootstrapData, 'nodeLabels' | 'nodeTaints'>

/** Parses bootstrap data; data of another format is ignored. @throws Error when data in the format `capstan` is invalid */
export function parseBootstrapData(value: string | undefined, format: string | undefined): Registration {
  if (value === undefined || format !== BootstrapFormat) return { nodeLabels: {}, nodeTaints: [] }
  try {
    const { nodeLabels = {}, nodeTaints = [] } = JSON.parse(value) as Partial<BootstrapData>
    return { nodeLabels, nodeTaints }
  } catch {
    throw new Error(`Cannot read bootstrap data: its format is ${BootstrapFormat}, but it is not JSON`)
  }
}
