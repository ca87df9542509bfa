/** The hooks of this provider, declared as core declares its own: types, validation, OpenAPI and conversion follow from here. */
import { commonResponse, defineHook, type Hook, newerVersion, retryResponse } from '@capstan/api'
import { s } from '@capstan/kube'

const declare = {
  group: 'hooks.provider.example.com',
  name: 'BeforeHostProvision',
  tag: 'Hosts',
  blocking: true,
  doc: 'Called before a Host is provisioned, again and again until no handler holds it back.',
}

/** What the controller calls: the newest version. */
export const BeforeHostProvision = defineHook({
  ...declare,
  version: 'v1beta1',
  request: {
    host: s.object({ namespace: s.string(), name: s.string() }).doc('The Host that is about to be provisioned.'),
    cores: s.int32().doc('How big it will be.'),
  },
  response: retryResponse,
})

/** What it was before: hosts by one name, whole minutes to wait. Handlers that registered for it go on working. */
export const BeforeHostProvisionV1alpha1 = defineHook({
  ...declare,
  version: 'v1alpha1',
  request: { hostname: s.string().doc('`<namespace>/<name>`.') },
  response: { ...commonResponse, waitMinutes: s.int32().default(0).doc('When to call again; 0 means go on.') },
  newer: newerVersion(BeforeHostProvision, {
    requestDown: ({ host }) => ({ hostname: `${host.namespace}/${host.name}` }),
    responseUp: ({ waitMinutes, ...rest }: { status: 'Success' | 'Failure'; message?: string; waitMinutes: number }) => ({
      ...rest,
      retryAfterSeconds: waitMinutes * 60,
    }),
  }),
})

/** For `createCatalog([...hookCatalog, ...hostHooks])`, and for the manager that discovers: `createProviders({ …, providerHooks: hostHooks })`. */
export const hostHooks: readonly Hook[] = [BeforeHostProvisionV1alpha1, BeforeHostProvision]
