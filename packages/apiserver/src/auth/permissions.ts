/** Permission checks in CEL expressions of webhooks and policies: `authorizer.group('').resource('pods').check('get')`. */
import type { CheckPermission } from '@capstan/kube'
import type { User } from './user.ts'
import type { Authorizer } from './authorizer.ts'
import { serviceAccountGroups, serviceAccountUser } from './rules.ts'

/** Returns the function that decides the checks. A check is about `sender`, the user of the request, unless it names a service account. */
export const permissionCheck =
  (authorizer: Authorizer, sender: User): CheckPermission =>
  ({ serviceAccount, verb, ...attributes }) => {
    const user =
      serviceAccount === undefined
        ? sender
        : {
            name: serviceAccountUser(serviceAccount.namespace, serviceAccount.name),
            groups: [...serviceAccountGroups(serviceAccount.namespace), 'system:authenticated'],
          }
    return authorizer.decide(
      'path' in attributes
        ? { kind: 'path', user, verb, path: attributes.path }
        : { kind: 'resource', user, verb, ...attributes },
    )
  }
