/**
 * Default roles and bindings of RBAC, including roles for Kubernetes' controllers: controllers that do not run in this server may run
 * elsewhere and connect with tokens. `scripts/tools/bootstrap-roles.ts` writes the data from upstream's module (bootstrappolicy, v1.36).
 */
import { readFileSync } from 'node:fs'
import type { ClusterRole, RoleBinding } from '@capstan/kube'

interface BootstrapObject {
  readonly name: string
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string
  readonly labels?: { readonly [label: string]: string }
}

export interface BootstrapRole extends BootstrapObject {
  /** Null for roles that aggregate other roles. */
  readonly rules: ClusterRole['rules'] | null
  readonly aggregationRule?: NonNullable<ClusterRole['aggregationRule']>
}

export interface BootstrapBinding extends BootstrapObject {
  readonly roleRef: RoleBinding['roleRef']
  /** Absent for a binding without subjects, such as `system:node`. */
  readonly subjects?: RoleBinding['subjects']
}

export interface BootstrapObjects {
  readonly roles: readonly BootstrapRole[]
  readonly bindings: readonly BootstrapBinding[]
}

export const { roles: bootstrapRoles, bindings: bootstrapBindings } = JSON.parse(
  readFileSync(new URL('bootstrap-objects.json', import.meta.url), 'utf8'),
) as BootstrapObjects
