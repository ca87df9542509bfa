import type { ObjectKey } from '@capstan/kube'

/**
 * The name by which a client asks the shared listener for the API server of one cluster (TLS server name). It needs no DNS:
 * kubeconfigs carry it as `tls-server-name` beside the listener's address.
 */
export const serverNameOf = ({ namespace = '', name }: ObjectKey): string => `${name}.${namespace}.clusters.capstan.dev`
