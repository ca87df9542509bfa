/** What a package of built-in kinds is written with: strategies, admission plugins, subresources, controllers. */
export * from './server.ts'
export * from './admission/plugin.ts'
export { variablesOf } from './admission/policy-variables.ts'
export { credentialID } from './auth/authenticate.ts'
export * from './auth/authorizer.ts'
export * from './auth/rules.ts'
export * from './auth/token.ts'
export type { Caller, User } from './auth/user.ts'
export type { ControllerOptions } from './controllers/options.ts'
export { setCondition } from './controllers/set-condition.ts'
export { WorkQueue } from './controllers/work-queue.ts'
export { age, humanDuration } from './http/table/human-duration.ts'
export {
  type ResourceInfo,
  type GoType,
  maskTrailingDash,
  type WriteContext,
  type WriteServices,
} from './registry/resource-info.ts'
export { crdStrategy } from './registry/crd-strategy.ts'
export { memberAt, memberText } from './registry/member.ts'
export { nameDescription } from './registry/name-column.ts'
export type { BuiltinResources, Registry } from './registry/registry.ts'
export type { PrinterColumn, PublishedColumn, Resource, Subresource } from './registry/resource.ts'
export { timeProblem } from './registry/time.ts'
export { memoryStore } from './store/memory.ts'
export { PendingWrites } from './store/pending.ts'
export { type Change, type Store, StoreConflict, type StoreKey } from './store/store.ts'
export { requireNamespace } from './verbs/steps/admit.ts'
export { mutateWebhooks, validateWebhooks } from './verbs/steps/call-webhooks.ts'
export { decode, draftOf } from './verbs/steps/decode.ts'
export { checkPreconditions, type Deletion, deletionOf, removeNamed } from './verbs/delete.ts'
export { trackFields } from './verbs/steps/managed-fields.ts'
export { modify } from './verbs/modify.ts'
export { type RequestContext, type Handler, exists, keyFor, type ServerContext, stored, writeContext } from './verbs/context.ts'
export { schemeName } from './verbs/errors.ts'
export { selectionOf } from './verbs/steps/selection.ts'
