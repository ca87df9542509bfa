/** The kinds of `rbac.authorization.k8s.io/v1`. */
import { ClusterRole, ClusterRoleBinding, pathSegmentProblems, Role, RoleBinding, type UnknownObject } from '@capstan/kube'
import type { PrinterColumn } from '@capstan/apiserver/kinds'
import { authorizeBinding, authorizeRole } from '../auth/escalation.ts'
import { declaredIn, type KindTable } from './builtin-kind.ts'
import { ageColumn, column, list, nameColumn, text, wide } from './columns.ts'
import { nullIfNone } from './go-nulls.ts'

function bindingColumns(): PrinterColumn[] {
  const subjects = (o: UnknownObject, kind: string) =>
    list<{ kind: string; name: string; namespace?: string }>(o, 'subjects')
      .filter((subject) => subject.kind === kind)
      .map(({ name: subject, namespace }) => (kind === 'ServiceAccount' ? `${namespace ?? ''}/${subject}` : subject))
      .join(', ')
  return [
    nameColumn,
    column('Role', (o) => `${text(o, 'roleRef', 'kind')}/${text(o, 'roleRef', 'name')}`),
    ageColumn,
    wide('Users', (o) => subjects(o, 'User')),
    wide('Groups', (o) => subjects(o, 'Group')),
    wide('ServiceAccounts', (o) => subjects(o, 'ServiceAccount')),
  ]
}

const nullRules = (role: Role | ClusterRole): void => nullIfNone(role, 'rules')

export const rbac: KindTable = {
  roles: {
    ...declaredIn(Role),
    authorize: authorizeRole('roles'),
    createsOnUpdate: true,
    default: nullRules,
    names: pathSegmentProblems,
  },
  clusterroles: {
    ...declaredIn(ClusterRole),
    authorize: authorizeRole('clusterroles'),
    createsOnUpdate: true,
    default: nullRules,
    names: pathSegmentProblems,
  },
  rolebindings: {
    ...declaredIn(RoleBinding),
    authorize: authorizeBinding('rolebindings'),
    createsOnUpdate: true,
    names: pathSegmentProblems,
    columns: bindingColumns(),
  },
  clusterrolebindings: {
    ...declaredIn(ClusterRoleBinding),
    authorize: authorizeBinding('clusterrolebindings'),
    createsOnUpdate: true,
    names: pathSegmentProblems,
    columns: bindingColumns(),
  },
}
