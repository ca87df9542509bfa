import { expect, test } from 'vitest'
import { type AuthorizationMode, authorizerOf } from './authorizer.ts'

const rule = { verbs: ['get'], apiGroups: [''], resources: ['pods'] }
/** RBAC authorizer with the same rule and the same error for every user. */
const rbac = {
  decide: () => ({ allowed: false, reason: '' }),
  rulesFor: () => ({ rules: [rule], errors: ['not complete'] }),
}
const user = { name: 'ann', groups: [] }

// Upstream: RulesFor of alwaysAllowAuthorizer and alwaysDenyAuthorizer, k8s.io/apiserver/pkg/authorization/authorizerfactory.
const allRules = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

test.each<{ modes: AuthorizationMode[]; rules: object[]; errors: string[] }>([
  { modes: ['AlwaysAllow'], rules: allRules, errors: [] },
  { modes: ['AlwaysDeny'], rules: [], errors: [] },
  { modes: ['RBAC'], rules: [rule], errors: ['not complete'] },
  { modes: ['RBAC', 'AlwaysAllow'], rules: [rule, ...allRules], errors: ['not complete'] },
])('rulesFor returns the rules and errors of all modes, here $modes', ({ modes, ...expected }) => {
  expect(authorizerOf(modes, rbac as never).rulesFor(user as never, 'default')).toEqual(expected)
})
