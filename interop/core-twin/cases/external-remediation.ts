/**
 * Cases of external remediation: for an unhealthy Machine, core creates a request from the template that
 * `spec.remediation.templateRef` of the MachineHealthCheck names.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Machine, MachineHealthCheck } from '@capstan/api'
import { ConfigMap, getCondition, isDeleting, type KubeObject, ownerReference } from '@capstan/kube'
import { named } from '../objects.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createStandAloneMachine, healthCheck, reportNodesReady } from './health-check.ts'
import { createReadyCluster } from './machine.ts'
import { deny } from './machine-set.ts'
import { createOwner } from './owners.ts'
import { endPolicy } from './policy.ts'

const templateRef = { apiVersion: `${stub.group}/v1`, kind: 'StubRemediationTemplate', name: 'r' }

/** Creates the remediation template, and a healthy Machine with a MachineHealthCheck. */
async function createCheckedMachine(twin: Twin, template: object = { template: { spec: { how: 'x' } } }): Promise<void> {
  await twin.create(stub.remediationTemplate, named('r', { spec: template }))
  await createReadyCluster(twin)
  await createStandAloneMachine(twin)
  await twin.settle('the Machine runs')
  await twin.create(MachineHealthCheck, healthCheck({ remediation: { templateRef } }) as never)
  await twin.settle('the Machine is healthy', hasHealthy(1))
}

const hasHealthy = (count: number) => (objects: readonly KubeObject[]) =>
  objects.some(
    (object) => object.kind === 'MachineHealthCheck' && (object as MachineHealthCheck).status?.currentHealthy === count,
  )

const isRequest = ({ kind }: KubeObject): boolean => kind === stub.remediation.kind

const creationDenied: Case = async (twin) => {
  await createCheckedMachine(twin)
  await deny(twin, { group: stub.group, resource: 'stubremediations', operation: 'CREATE' })
  await reportNodesReady(twin, 'False')
  await twin.settle('the request cannot be created', (objects) =>
    objects.some(
      (object) =>
        object.kind === 'MachineHealthCheck' &&
        (object as MachineHealthCheck).status?.deprecated?.v1beta1?.conditions?.some(
          ({ reason }) => reason === 'ExternalRemediationRequestCreationFailed',
        ),
    ),
  )
  await twin.runOnBoth('end the policy', (client) => endPolicy(client, twin.namespace))
  await twin.settle('the request is created', (objects) => objects.some(isRequest))
}

/** A user has created an object with the name of the request. */
const requestExists: Case = async (twin) => {
  await createCheckedMachine(twin)
  await twin.runOnBoth('create the request', async (client) => {
    const ownerReferences = [ownerReference(await createOwner(client, twin), ConfigMap)]
    const metadata = { namespace: twin.namespace, name: 'm', finalizers: ['twin.capstan.dev/hold'], ownerReferences }
    await client.create(stub.remediation, { metadata })
  })
  await reportNodesReady(twin, 'False')
  await twin.settle('the Machine is unhealthy', (objects) => hasHealthy(0)(objects) && !objects.some(isDeleting))
  await reportNodesReady(twin, 'True')
  await twin.settle('the request is being deleted', (objects) =>
    objects.some((object) => isRequest(object) && isDeleting(object)),
  )
  await twin.patch(stub.remediation, 'm', { metadata: { finalizers: null } })
  await twin.settle('the request is deleted', (objects) => !objects.some(isRequest))
}

/** The request is deleted while the Machine is still unhealthy. */
const requestDeleted: Case = async (twin) => {
  await createCheckedMachine(twin)
  await reportNodesReady(twin, 'False')
  await twin.settle('the request is created', (objects) => objects.some(isRequest))
  await twin.patch(stub.remediation, 'm', { metadata: { labels: { first: '' } } })
  await twin.delete(stub.remediation, 'm')
  await twin.touch(MachineHealthCheck, 'mhc')
  await twin.settle('another request is created', (objects) =>
    objects.some((object) => isRequest(object) && object.metadata.labels?.first === undefined),
  )
}

/** The template lacks `spec.template`. */
const emptyTemplate: Case = async (twin) => {
  await createCheckedMachine(twin, {})
  await reportNodesReady(twin, 'False')
  await twin.settle('no request is created', hasHealthy(0))
}

/** Creates a Machine whose Node is not ready, and then a MachineHealthCheck that selects the Machine. */
async function createUnhealthyMachine(twin: Twin, remediation: object): Promise<void> {
  await twin.create(stub.remediationTemplate, named('r', { spec: { template: { spec: { how: 'x' } } } }))
  await createReadyCluster(twin)
  await createStandAloneMachine(twin)
  await twin.settle('the Machine runs')
  await reportNodesReady(twin, 'False')
  await twin.settle('the Node is not ready')
  await twin.create(MachineHealthCheck, healthCheck({ remediation }) as never)
}

/** Remediation is not yet allowed when the MachineHealthCheck finds the Machine unhealthy. */
const allowedLater: Case = async (twin) => {
  await createUnhealthyMachine(twin, { templateRef, triggerIf: { unhealthyLessThanOrEqualTo: 0 } })
  await twin.settle('remediation is not allowed', hasHealthy(0))
  await twin.patch(MachineHealthCheck, 'mhc', { spec: { remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 1 } } } })
  await twin.settle('the request is created', (objects) => objects.some(isRequest))
}

const externallyRemediatedIs = (status: string) => (objects: readonly KubeObject[]) =>
  objects.some(
    (object) => object.kind === 'Machine' && getCondition(object as Machine, 'ExternallyRemediated')?.status === status,
  )

/** The Machine is remediated, and becomes unhealthy again. */
const unhealthyAgain: Case = async (twin) => {
  await createUnhealthyMachine(twin, { templateRef })
  await twin.settle('the request is created', (objects) => objects.some(isRequest))
  await twin.runOnBoth('report that the Machine was remediated', async (client) => {
    const key = { namespace: twin.namespace, name: 'm' }
    const { metadata, status } = await client.get(Machine, key)
    const conditions = status?.conditions?.map((condition) =>
      condition.type === 'ExternallyRemediated' ? { ...condition, status: 'True', reason: 'Rebooted' } : condition,
    )
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, status: { conditions } }
    await client.patch(Machine, key, { type: 'merge', body }, { subresource: 'status', fieldManager: 'twin' })
    return {}
  })
  await twin.settle('the Machine was remediated', externallyRemediatedIs('True'))
  await reportNodesReady(twin, 'True')
  await twin.settle('the request is deleted', (objects) => !objects.some(isRequest))
  await reportNodesReady(twin, 'False')
  await twin.settle('another request is created', externallyRemediatedIs('False'))
}

/** The kind of the template does not exist. */
const unknownKind: Case = async (twin) => {
  await createUnhealthyMachine(twin, { templateRef: { ...templateRef, kind: 'NothingTemplate' } })
  await twin.settle('no request is created', hasHealthy(0))
}

export const externalRemediationCases: Cases = {
  'healthcheck-external-creation-denied': creationDenied,
  'healthcheck-external-request-exists': requestExists,
  'healthcheck-external-request-deleted': requestDeleted,
  'healthcheck-external-template-empty': emptyTemplate,
  'healthcheck-external-allowed-later': allowedLater,
  'healthcheck-external-unhealthy-again': unhealthyAgain,
  'healthcheck-external-unknown-kind': unknownKind,
}
