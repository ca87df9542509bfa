import type { ObjectKey } from '@capstan/kube'

/**
 * Returns the TLS server name with which a client selects the API server of a cluster on the shared listener. The name needs no DNS,
 * because kubeconfigs contain it as `tls-server-name` in addition to the endpoint of the control plane.
 */
export const serverNameOf = ({ namespace = '', name }: ObjectKey): string => `${name}.${namespace}.clusters.capstan.dev`
