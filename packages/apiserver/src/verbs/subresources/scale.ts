/** The scale subresource: replicas of any kind as a Scale object. Upstream: apiextensions registry/customresource/etcd.go, v0.36. */
import {
  apiVersionOf,
  atOnce,
  badRequest,
  draft,
  freeze,
  invalid,
  invalidObject,
  isRecord,
  type KubeObject,
  type LabelSelector,
  labelSelector,
  type ScaleSubresource,
  type UnknownObject,
} from '@capstan/kube'
import { internalError } from '../../admission/review.ts'
import { memberAt } from '../../registry/member.ts'
import { apply } from '../apply.ts'
import { decode, draftOf } from '../steps/decode.ts'
import { modify } from '../modify.ts'
import { patcher } from '../patch.ts'
import { type RequestContext, exists, keyFor, type ServerContext, stored } from '../context.ts'
import { verbNotSupported } from '../errors.ts'

/** Executes a get, update or patch of the scale subresource, except an apply. @throws StatusError MethodNotAllowed for other verbs */
export async function scale(server: ServerContext, context: RequestContext): Promise<KubeObject> {
  const { info, request } = context
  const paths = info.scale!
  if (request.verb === 'get') {
    const object = stored(server, info, keyFor(info, request.namespace, request.name!))
    const converted = await server.converter.convert(info, object)
    // Upstream: reading the scale of a custom resource without replicas is an error; setting the replicas is allowed.
    if (!info.builtin && getPath(converted, paths.specReplicasPath) === undefined)
      throw internalError(`the spec replicas field ${JSON.stringify(paths.specReplicasPath)} does not exist`)
    return scaleOf(paths, converted)
  }
  if (request.verb === 'update') {
    const body = draftOf(server.registry.scaleFor(info), request.body)
    // As for a PUT of the whole object, an error in the body takes precedence over NotFound.
    if (!exists(server, context)) decode({ ...context, info: server.registry.scaleFor(info) }, draft(body), 'body')
    return writeReplicas(server, context, paths, true, () => draft(body))
  }
  if (request.verb === 'patch') {
    const change = patcher(info.builtin ? { ...context, info: server.registry.scaleFor(info) } : context)
    return writeReplicas(
      server,
      context,
      paths,
      false,
      (current) => atOnce(change(scaleOf(paths, current))) as Record<string, unknown>,
    )
  }
  throw verbNotSupported(request.verb, info)
}

/**
 * Server-side apply of a Scale: applies its replicas to the scaled object. The Scale may omit its name. Upstream:
 * ScaleHandler.
 */
export async function applyScale(
  server: ServerContext,
  context: RequestContext,
): Promise<{ object: KubeObject; created: boolean }> {
  const { info, request } = context
  const { specReplicasPath } = info.scale!
  const appliedScale = draftOf(info, request.body)
  checkType(appliedScale)
  checkName(context, appliedScale)
  const { apiVersion, kind } = info
  const appliedObject: Record<string, unknown> = {
    apiVersion,
    kind,
    metadata: { ...(appliedScale.metadata as object | undefined), name: request.name },
  }
  if (isRecord(appliedScale.spec) && appliedScale.spec.replicas !== undefined)
    setPath(appliedObject as UnknownObject, specReplicasPath, replicasOf(appliedScale))
  const { object } = await apply(server, { ...context, request: { ...request, body: appliedObject } })
  return { object: scaleOf(info.scale!, object), created: false }
}

async function writeReplicas(
  server: ServerContext,
  context: RequestContext,
  paths: ScaleSubresource,
  isUpdate: boolean,
  requestedScale: (current: UnknownObject) => Record<string, unknown>,
): Promise<KubeObject> {
  const scaled = await modify(server, context, {
    replaces: false,
    view: {
      kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
      fromObject: (object) => scaleOf(paths, object) as UnknownObject,
      applyTo: (object, view) => setPath(object, paths.specReplicasPath, replicasOf(view)),
    },
    apply(current) {
      const scaleContext = { ...context, info: server.registry.scaleFor(context.info) }
      const requested = decode(scaleContext, requestedScale(current), isUpdate ? 'body' : 'patch')
      const replicas = replicasOf(requested)
      const object = draft(current)
      setPath(object, paths.specReplicasPath, replicas)
      const { resourceVersion, uid } = requested.metadata as Partial<KubeObject['metadata']>
      if (resourceVersion) object.metadata.resourceVersion = resourceVersion
      if (uid && isUpdate) object.metadata.uid = uid
      if (context.info.builtin && replicas < 0) {
        const error = invalid('spec.replicas', replicas, 'must be greater than or equal to 0')
        throw invalidObject({ group: 'autoscaling', kind: 'Scale' }, current.metadata.name, [error])
      }
      return object
    },
  })
  return scaleOf(paths, scaled)
}

const replicasOf = ({ spec }: Record<string, unknown>): number =>
  isRecord(spec) && spec.replicas !== undefined ? Number(spec.replicas) : 0

function checkName({ request: { name } }: RequestContext, { metadata }: Record<string, unknown>): void {
  const sentName = isRecord(metadata) ? metadata.name : undefined
  if (typeof sentName !== 'string' || sentName === name) return
  throw badRequest(`the name of the object (${sentName}) does not match the name on the URL (${name})`)
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

function checkType({ apiVersion, kind }: Record<string, unknown>): void {
  if ((apiVersion ?? 'autoscaling/v1') === 'autoscaling/v1' && (kind ?? 'Scale') === 'Scale') return
  throw badRequest(`wrong APIVersion or Kind in Scale: ${text(apiVersion)} ${text(kind)}, expected autoscaling/v1 Scale`)
}

/** Returns the Scale of an object; missing replicas are 0. Upstream: scaleFromCustomResource. */
function scaleOf({ specReplicasPath, statusReplicasPath, labelSelectorPath }: ScaleSubresource, object: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
  const replicas = Number(getPath(object, specReplicasPath) ?? 0)
  const selector = labelSelectorPath === undefined ? undefined : selectorText(getPath(object, labelSelectorPath))
  return freeze({
    kind: 'Scale',
    apiVersion: apiVersionOf({ group: 'autoscaling', version: 'v1' }),
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), uid, resourceVersion, creationTimestamp },
    // Upstream omits 0.
    spec: replicas === 0 ? {} : { replicas },
    status: {
      replicas: Number(getPath(object, statusReplicasPath) ?? 0),
      ...(typeof selector === 'string' && selector !== '' ? { selector } : {}),
    },
  }) as KubeObject
}

/** Returns a selector as text. Workloads have a label selector, ReplicationControllers a map of labels, custom resources a string. */
function selectorText(selector: unknown): unknown {
  if (!isRecord(selector)) return selector
  const isLabelSelector = 'matchLabels' in selector || 'matchExpressions' in selector
  return labelSelector((isLabelSelector ? selector : { matchLabels: selector }) as LabelSelector).text
}

const membersOf = (path: string): string[] => path.split('.').slice(1)
const getPath = (object: object, path: string): unknown => memberAt(object, membersOf(path))

function setPath(object: UnknownObject, path: string, value: unknown): void {
  const members = membersOf(path)
  let parent: Record<string, unknown> = object
  for (const member of members.slice(0, -1)) {
    if (!isRecord(parent[member])) parent[member] = {}
    parent = parent[member] as Record<string, unknown>
  }
  parent[members.at(-1)!] = value
}
