/**
 * Updates managedFields in creates and changes other than apply, and converts objects for this purpose. Apply uses the same conversions.
 */
import {
  draft,
  fieldsAt,
  freeze,
  inPieces,
  type KubeObject,
  type ManagedFieldsContext,
  managedFieldsUpdate,
  parseApiVersion,
  resetFields,
  StatusError,
  type UnknownObject,
  type Work,
  writeJSON,
} from '@capstan/kube'
import { needsWebhook } from '../../conversion/converter.ts'
import { type ResourceInfo, type GoType, inVersion } from '../../registry/resource-info.ts'
import type { RequestContext, ServerContext } from '../context.ts'

/** Updates the managedFields of a draft, for a create or change other than an apply; returns the draft to continue with. */
export function trackFields(
  server: ServerContext,
  context: RequestContext,
  object: UnknownObject,
  old: UnknownObject | undefined,
): UnknownObject | Promise<UnknownObject> {
  return context.info.conversion
    ? withConversions(server, context, (context) => managedFieldsUpdate(old, draft(object), context))
    : inPieces(server.clock, managedFieldsUpdate(old, object, managedFieldsContext(server, context, failToConvert)))
}

/**
 * Calls `run`, which compares objects in the versions that the field managers used. When `run` needs a version that only a conversion webhook
 * provides, it is aborted, and called again after the webhook has responded. `run` must not change the compared objects.
 */
export async function withConversions<T>(
  server: ServerContext,
  context: RequestContext,
  run: (context: ManagedFieldsContext) => Work<T>,
): Promise<T> {
  const converted = new Map<string, KubeObject>()
  const lookUp = (to: ResourceInfo, object: KubeObject): KubeObject => {
    const key = `${to.apiVersion} ${writeJSON(object)}`
    const result = converted.get(key)
    if (!result) throw new ConversionNeeded(to, object, key)
    return result
  }
  for (;;) {
    try {
      return await inPieces(server.clock, run(managedFieldsContext(server, context, lookUp)))
    } catch (err) {
      if (!(err instanceof ConversionNeeded)) throw err
      converted.set(err.key, await server.converter.convert(err.to, err.object))
    }
  }
}

class ConversionNeeded extends Error {
  override readonly name = 'ConversionNeeded'
  readonly to: ResourceInfo
  readonly object: KubeObject
  readonly key: string

  constructor(to: ResourceInfo, object: KubeObject, key: string) {
    super(`a conversion to ${to.apiVersion} is needed`)
    this.to = to
    this.object = object
    this.key = key
  }
}

const failToConvert = (to: ResourceInfo): never => {
  throw new TypeError(`${to.storage} has no conversion webhook`)
}

function managedFieldsContext(
  { registry, clock }: ServerContext,
  { info, request: { subresource }, options, caller }: RequestContext,
  lookUp: (to: ResourceInfo, object: KubeObject) => KubeObject,
): ManagedFieldsContext {
  return {
    apiVersion: info.apiVersion,
    schema: info.schema,
    manager: (options.fieldManager || caller.agent || 'unknown').slice(0, MaxManager),
    ...(subresource === undefined ? {} : { subresource }),
    ignored: info.strategy.resetFields?.[subresource ?? '']
      ? fieldsAt(info.strategy.resetFields[subresource ?? '']!)
      : resetFields({
          ...(subresource === 'status' ? { subresource } : {}),
          hasStatusSubresource: info.statusSubresource,
          builtin: info.builtin,
        }),
    now: clock.now(),
    ...(info.goType ? { zeroValue: zeroObject(info, info.goType) } : {}),
    untimed: subresource === 'scale',
    convert(object: KubeObject, apiVersion: string) {
      const target = info.builtin ? builtinVersion(registry, info, apiVersion) : info.versions?.get(apiVersion)
      if (!target) {
        if (info.builtin) return undefined
        throw new StatusError('', `request to convert CR to an invalid group/version: ${apiVersion}`)
      }
      return { object: needsWebhook(target, object) ? lookUp(target, object) : inVersion(target, object), schema: target.schema }
    },
  }
}

function builtinVersion(registry: ServerContext['registry'], info: ResourceInfo, apiVersion: string): ResourceInfo | undefined {
  const { group, version } = parseApiVersion(apiVersion)
  const served = registry.find(group, version, info.plural)
  return served?.storage === info.storage ? served : undefined
}

/** Returns an object of the kind without any field set, in the form in which the server stores objects. */
function zeroObject(info: ResourceInfo, goType: GoType): object {
  let zeroValue = zeroValues.get(info)
  if (!zeroValue) {
    const object = draft(goType.zeroValue()) as UnknownObject
    info.strategy.normalize?.(object)
    zeroValues.set(info, (zeroValue = freeze(object)))
  }
  return zeroValue
}
const zeroValues = new WeakMap<ResourceInfo, object>()

/** Maximum length of the name of a field manager, in UTF-16 units. Upstream: FieldManagerMaxLength, which counts bytes. */
const MaxManager = 128
