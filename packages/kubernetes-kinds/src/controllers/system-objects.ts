/**
 * Creates system priority classes, FlowSchemas and PriorityLevelConfigurations when a server starts. Existing objects are not changed.
 * Upstream: pkg/registry/{scheduling,flowcontrol}/rest, v1.36.
 */
import { apiVersionOf, type Client, isReason, type Kind, timestamp, unknownKind, type UnknownObject } from '@capstan/kube'
import { systemPriorityClasses } from '../kinds/scheduling.ts'
import { flowSchemas, priorityLevels } from './flow-objects.ts'

const kindOf = (group: string, kind: string, plural: string): Kind<UnknownObject> =>
  unknownKind({ apiVersion: apiVersionOf({ group, version: 'v1' }), kind, plural, scope: 'Cluster' })

const PriorityClass = kindOf('scheduling.k8s.io', 'PriorityClass', 'priorityclasses')
const FlowSchema = kindOf('flowcontrol.apiserver.k8s.io', 'FlowSchema', 'flowschemas')
const PriorityLevel = kindOf('flowcontrol.apiserver.k8s.io', 'PriorityLevelConfiguration', 'prioritylevelconfigurations')

const annotations = { 'apf.kubernetes.io/autoupdate-spec': 'true' }
const producer = { fieldManager: 'api-priority-and-fairness-config-producer-v1' }
const consumer = { fieldManager: 'api-priority-and-fairness-config-consumer-v1', subresource: 'status' as const }

export async function ensureSystemObjects(client: Client, now: number): Promise<void> {
  await Promise.all([
    ...systemPriorityClasses.map(({ name, ...fields }) =>
      unlessExists(client.create(PriorityClass, { metadata: { name }, ...fields })),
    ),
    ...priorityLevels.map(({ name, spec }) =>
      unlessExists(client.create(PriorityLevel, { metadata: { name, annotations }, spec }, producer)),
    ),
    ...flowSchemas.map(async ({ name, spec }) => {
      const created = await unlessExists(client.create(FlowSchema, { metadata: { name, annotations }, spec }, producer))
      if (created) await client.apply(FlowSchema, notDangling(name, spec.priorityLevelConfiguration.name, now), consumer)
    }),
  ])
}

const notDangling = (name: string, level: string, now: number) => ({
  metadata: { name },
  status: {
    conditions: [
      {
        type: 'Dangling',
        status: 'False',
        lastTransitionTime: timestamp(now),
        reason: 'Found',
        message: `This FlowSchema references the PriorityLevelConfiguration object named ${JSON.stringify(level)} and it exists`,
      },
    ],
  },
})

async function unlessExists<T>(creation: Promise<T>): Promise<T | undefined> {
  try {
    return await creation
  } catch (err) {
    if (isReason(err, 'AlreadyExists')) return undefined
    throw err
  }
}
