import type { ObjectKey } from '@capstan/kube'

/**
 * Returns the TLS server name with which a client selects the API server of a cluster on the shared listener. It needs no DNS:
 * kubeconfigs contain it as `tls-server-name` beside the listener's address.
 */
export const serverNameOf = ({ namespace = '', name }: ObjectKey): string => `${name}.${namespace}.clusters.capstan.dev`
