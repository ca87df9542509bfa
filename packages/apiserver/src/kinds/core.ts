/** The kinds of `v1`. */
import type { KindTable } from './builtin-kind.ts'
import { configmaps } from './core/config-map.ts'
import { events } from './core/event.ts'
import { namespaces } from './core/namespace.ts'
import { nodes } from './core/node.ts'
import { pods } from './core/pod.ts'
import { secrets } from './core/secret.ts'
import { serviceaccounts } from './core/service-account.ts'
import { services } from './core/service.ts'

export const core: KindTable = { configmaps, events, namespaces, nodes, pods, secrets, serviceaccounts, services }
