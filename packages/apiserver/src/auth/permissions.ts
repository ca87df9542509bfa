/** Permission checks in CEL expressions of admission. */
import type { CheckPermission } from '@capstan/kube'
import type { User } from './user.ts'
import type { Authorizer } from './authorizer.ts'
import { serviceAccountGroups, serviceAccountUser } from './rules.ts'

export const permissionCheck =
  (authorizer: Authorizer, sender: User): CheckPermission =>
  ({ serviceAccount, verb, ...about }) => {
    const user =
      serviceAccount === undefined
        ? sender
        : {
            name: serviceAccountUser(serviceAccount.namespace, serviceAccount.name),
            groups: [...serviceAccountGroups(serviceAccount.namespace), 'system:authenticated'],
          }
    return authorizer.decide(
      'path' in about ? { kind: 'path', user, verb, path: about.path } : { kind: 'resource', user, verb, ...about },
    )
  }
