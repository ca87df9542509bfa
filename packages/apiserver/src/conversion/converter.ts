/** Converts objects between the versions of a CRD, by its conversion webhook if it has one. */
import {
  appendAll,
  type Clock,
  freeze,
  type KubeObject,
  parseApiVersion,
  pauseIfDue,
  type Random,
  randomUUID,
  StatusError,
  type UnknownObject,
} from '@capstan/kube'
import type { WebhookCaller } from '../admission/webhook-caller.ts'
import { type ResourceInfo, inVersion } from '../registry/resource-info.ts'
import { jsonOf } from '../store/packed.ts'
import { checkedConversion, conversionReview, convertedObjects, InvalidConversion } from './conversion-review.ts'

/** Timeout of a webhook call, as in upstream. */
const TimeoutSeconds = 30

/** When the objects of a webhook call have this many characters together, further objects are converted by another call. */
const MaxCharacters = 1 << 20

export class Converter {
  readonly #clock: Clock
  readonly #random: Random
  readonly #caller: WebhookCaller
  /** Conversions for watchers, so that all watchers share one conversion of a change. */
  readonly #sharedConversions = new WeakMap<ResourceInfo, WeakMap<KubeObject, Promise<KubeObject>>>()

  constructor(options: { clock: Clock; random: Random; caller: WebhookCaller }) {
    this.#clock = options.clock
    this.#random = options.random
    this.#caller = options.caller
  }

  /**
   * Returns the object in the version of `info`: frozen, or `object` itself when it does not change. Calls the webhook only
   * when the object is in another version.
   */
  async convert<T extends KubeObject>(info: ResourceInfo, object: T): Promise<T> {
    if (!needsWebhook(info, object)) return inVersion(info, object)
    const [converted] = await this.#callWebhook(info, [object])
    return converted as KubeObject as T
  }

  /**
   * For dry runs: converts an object by webhook to its storage version and back, as a write does, so that the dry run fails if the write
   * would fail. Without a webhook, returns the object itself.
   */
  async roundTrip<T extends KubeObject>(info: ResourceInfo, object: T): Promise<T> {
    return info.stored && info.conversion ? this.convert(info, await this.convert(info.stored, object)) : object
  }

  /**
   * Like `convert` for many objects. One webhook call converts all objects that need a webhook; several calls do so if the objects are large.
   * @throws StatusError when the webhook fails or returns invalid objects; StatusError or the signal's reason when the signal aborts
   */
  async convertAll(
    info: ResourceInfo,
    objects: readonly KubeObject[],
    signal: AbortSignal | undefined,
  ): Promise<readonly KubeObject[]> {
    const toConvert = objects.filter((object) => needsWebhook(info, object))
    if (toConvert.length === 0) return objects.map((object) => inVersion(info, object))
    const converted = await this.#callWebhook(info, toConvert, signal)
    let next = 0
    return objects.map((object) => (needsWebhook(info, object) ? converted[next++]! : inVersion(info, object)))
  }

  /** Like `convert`, with the result shared between callers. Only for watches; a later read converts the object again. */
  convertShared(info: ResourceInfo, object: KubeObject): Promise<KubeObject> {
    let conversions = this.#sharedConversions.get(info)
    if (!conversions) this.#sharedConversions.set(info, (conversions = new WeakMap()))
    let conversion = conversions.get(object)
    if (!conversion) {
      conversion = this.convert(info, object)
      conversions.set(object, conversion)
      // A failed conversion is not cached, so the next caller converts again.
      conversion.catch(() => conversions.delete(object))
    }
    return conversion
  }

  /**
   * Converts all objects by webhook.
   * @throws StatusError without a reason, when the webhook fails or returns invalid objects; the signal's reason when the signal has
   *   aborted before a call
   */
  async #callWebhook(to: ResourceInfo, objects: readonly KubeObject[], signal?: AbortSignal): Promise<readonly UnknownObject[]> {
    const converted: UnknownObject[] = []
    let sources: KubeObject[] = []
    let texts: string[] = []
    let characters = 0
    for (const [index, object] of objects.entries()) {
      const source = withStorageDefaults(to, object)
      const text = jsonOf(source)
      sources.push(source)
      texts.push(text)
      characters += text.length
      const pause = pauseIfDue(this.#clock)
      if (pause) await pause
      if (characters < MaxCharacters && index < objects.length - 1) continue
      signal?.throwIfAborted()
      const part = { start: converted.length, total: objects.length, signal }
      appendAll(converted, await this.#convertPart(to, sources, texts, part))
      ;[sources, texts, characters] = [[], [], 0]
    }
    return converted
  }

  /** Converts objects with one call. `start` is the index of the first object, for error texts. */
  async #convertPart(
    to: ResourceInfo,
    sources: readonly KubeObject[],
    texts: readonly string[],
    { start, total, signal }: { start: number; total: number; signal: AbortSignal | undefined },
  ): Promise<readonly UnknownObject[]> {
    const { clientConfig, reviewVersion } = to.conversion!
    const { group, version } = parseApiVersion(sources[0]!.apiVersion)
    const fail = (text: string) => new StatusError('', `conversion webhook for ${group}/${version}, Kind=${to.kind} ${text}`)
    const uid = randomUUID(this.#random)
    let converted: readonly unknown[]
    try {
      const review = conversionReview(reviewVersion, uid, to.apiVersion, texts)
      converted = convertedObjects(reviewVersion, uid, await this.#caller.call(clientConfig, TimeoutSeconds, review, signal))
    } catch (err) {
      throw fail(`failed: ${(err as Error).message}`)
    }
    if (converted.length !== sources.length) throw fail(`returned ${converted.length} objects, expected ${sources.length}`)
    const checked: UnknownObject[] = []
    for (const [index, source] of sources.entries()) {
      const pause = pauseIfDue(this.#clock)
      if (pause) await pause
      try {
        const object = checkedConversion(source, converted[index], to.apiVersion)
        to.structural.prune(object)
        checked.push(freeze(object))
      } catch (err) {
        if (!(err instanceof InvalidConversion)) throw err
        if (err.part === 'type') throw fail(`returned invalid object at index ${start + index}: ${err.message}`)
        const where = total === 1 ? '' : ` at index ${start + index}`
        throw fail(`returned invalid ${total === 1 ? '' : 'converted '}${err.part}${where}: ${err.message}`)
      }
    }
    return checked
  }
}

/**
 * Reports whether only a webhook can convert the object to the version of the ResourceInfo. An object without apiVersion has that version.
 * As in upstream, an object with only apiVersion and kind needs no webhook; server-side apply makes such objects when it removes all fields
 * of a manager.
 */
export const needsWebhook = ({ conversion, apiVersion }: ResourceInfo, object: KubeObject): boolean =>
  conversion !== undefined &&
  object.apiVersion !== undefined &&
  object.apiVersion !== apiVersion &&
  Object.keys(object).length > 2

/** Adds the defaults of the storage version to an object in that version; returns any other object unchanged. */
const withStorageDefaults = ({ stored }: ResourceInfo, object: KubeObject): KubeObject =>
  stored && stored.apiVersion === object.apiVersion ? inVersion(stored, object) : object
