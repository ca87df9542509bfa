/** What somebody may do, as expressions of admission ask for it. */
import type { AskForRights } from '@capstan/kube'
import type { User } from '../engine.ts'
import type { Authorizer } from './authorizer.ts'
import { serviceAccountGroups, serviceAccountUser } from './rules.ts'

export const rightsOf =
  (authorizer: Authorizer, sender: User): AskForRights =>
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
