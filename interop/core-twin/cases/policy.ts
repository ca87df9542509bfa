/** Admission policies that reject requests. Cases use them to make writes of core fail. */
import { type Client, ConfigMap, messageOf, seconds, sleep, systemClock, unknownKind } from '@capstan/kube'
import type { Twin } from '../twin.ts'

const ValidatingAdmissionPolicy = unknownKind({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  plural: 'validatingadmissionpolicies',
  scope: 'Cluster',
})
const ValidatingAdmissionPolicyBinding = unknownKind({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  plural: 'validatingadmissionpolicybindings',
  scope: 'Cluster',
})

/** The requests that a policy rejects. */
export interface DeniedRequests {
  readonly group: string
  readonly resource: string
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  /** CEL expression of the policy. Requests are rejected when it is false. Default: all requests are rejected. */
  readonly accepted?: string
  /** For a namespaced resource: the only namespace in which requests are rejected. Default: all namespaces. */
  readonly namespace?: string
}

/**
 * Creates a policy that rejects requests, and waits until the API server enforces the policy. kube-apiserver reads new policies about
 * once a second.
 */
export async function createPolicy(client: Client, name: string, denied: DeniedRequests): Promise<void> {
  const { group, resource, operation, accepted = 'false', namespace } = denied
  const rules = [
    { apiGroups: [group], apiVersions: ['*'], operations: [operation], resources: [resource] },
    { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: [ConfigMap.plural], resourceNames: [probe] },
  ]
  const namespaceSelector =
    namespace === undefined ? {} : { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } }
  const spec = {
    matchConstraints: { ...namespaceSelector, resourceRules: rules },
    validations: [{ expression: `request.name != '${probe}' && (${accepted})`, message: denialMessage }],
  }
  await client.create(ValidatingAdmissionPolicy, { metadata: { name }, spec } as never)
  const binding = { policyName: name, validationActions: ['Deny'] }
  await client.create(ValidatingAdmissionPolicyBinding, { metadata: { name }, spec: binding } as never)
  const end = performance.now() + MaxWait
  while (!(await rejectsProbe(client, namespace))) {
    if (performance.now() > end) throw new Error(`the API server does not enforce the policy ${name} after 60 s`)
    await sleep(systemClock, 100)
  }
}

/** Message of every policy. The error of a rejected request contains it. */
export const denialMessage = 'not here'
/** Name of a ConfigMap that every policy rejects. */
const probe = 'policy-probe'
const MaxWait = seconds(60)

async function rejectsProbe(client: Client, namespace = 'default'): Promise<boolean> {
  try {
    await client.create(ConfigMap, { metadata: { namespace, name: probe } }, { dryRun: true })
    return false
  } catch (err) {
    if (messageOf(err).includes(denialMessage)) return true
    throw err
  }
}

/** Rejects Events with this reason in the namespace of the case, because their number or text depends on timing within upstream. */
export const denyEvents = (twin: Twin, reason: string): Promise<void> =>
  twin.runOnBoth('create the policy', (client) =>
    createPolicy(client, twin.namespace, {
      group: '',
      resource: 'events',
      operation: 'CREATE',
      accepted: `object.reason != '${reason}'`,
      namespace: twin.namespace,
    }),
  )

/** Deletes the binding of a policy, so that the API server no longer enforces the policy. */
export const endPolicy = (client: Client, name: string): Promise<unknown> =>
  client.delete(ValidatingAdmissionPolicyBinding, { name })
