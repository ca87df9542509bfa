/** The kinds of `apps/v1`. */
import { controllerrevisions } from './apps/controller-revision.ts'
import { daemonsets } from './apps/daemon-set.ts'
import { deployments } from './apps/deployment.ts'
import { replicasets } from './apps/replica-set.ts'
import { statefulsets } from './apps/stateful-set.ts'
import type { KindTable } from './builtin-kind.ts'

export const apps: KindTable = { controllerrevisions, daemonsets, deployments, replicasets, statefulsets }
