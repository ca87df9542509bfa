/** Objects in other versions than they are stored in, by way of the webhook that their definition names. */
import { freeze, type KubeObject, parseApiVersion, type Random, randomUUID, StatusError, type UnknownObject } from '@capstan/kube'
import type { WebhookCaller } from '../admission/webhook-caller.ts'
import { type Definition, inVersion } from '../registry/definition.ts'
import { checkedConversion, conversionReview, convertedObjects, InvalidConversion } from './conversion-review.ts'

/** Upstream: the time that a conversion may take. */
const TimeoutSeconds = 30

export class Converter {
  readonly #random: Random
  readonly #caller: WebhookCaller
  /** What watchers were shown: all of them see one conversion of a change. */
  readonly #shared = new WeakMap<Definition, WeakMap<KubeObject, Promise<KubeObject>>>()

  constructor(options: { random: Random; caller: WebhookCaller }) {
    this.#random = options.random
    this.#caller = options.caller
  }

  /** The object as the version shows it, frozen. Asks nobody where nobody need be asked. */
  async show<T extends KubeObject>(definition: Definition, object: T): Promise<T> {
    if (!needsWebhook(definition, object)) return inVersion(definition, object)
    const [shown] = await this.#convert(definition, [object])
    return shown as KubeObject as T
  }

  /** The same for many objects, in one call for all that need it. */
  async showAll(definition: Definition, objects: readonly KubeObject[]): Promise<readonly KubeObject[]> {
    const foreign = objects.filter((object) => needsWebhook(definition, object))
    if (foreign.length === 0) return objects.map((object) => inVersion(definition, object))
    const shown = await this.#convert(definition, foreign)
    let next = 0
    return objects.map((object) => (needsWebhook(definition, object) ? shown[next++]! : inVersion(definition, object)))
  }

  /** What `show` gives, the same for everybody who asks for this object. Only for watches: a later read asks again. */
  showShared(definition: Definition, object: KubeObject): Promise<KubeObject> {
    let views = this.#shared.get(definition)
    if (!views) this.#shared.set(definition, (views = new WeakMap()))
    let view = views.get(object)
    if (!view) {
      view = this.show(definition, object)
      views.set(object, view)
      // The next one who wants it tries anew.
      view.catch(() => views.delete(object))
    }
    return view
  }

  /** @throws StatusError without a reason: what is wrong with the webhook */
  async #convert(to: Definition, objects: readonly KubeObject[]): Promise<readonly UnknownObject[]> {
    const { clientConfig, reviewVersion } = to.conversion!
    const sources = objects.map((object) => asStored(to, object))
    const { group, version } = parseApiVersion(sources[0]!.apiVersion)
    const fail = (text: string) => new StatusError('', `conversion webhook for ${group}/${version}, Kind=${to.kind} ${text}`)
    const uid = randomUUID(this.#random)
    let converted: readonly unknown[]
    try {
      const review = conversionReview(reviewVersion, uid, to.apiVersion, sources)
      converted = convertedObjects(reviewVersion, uid, await this.#caller.call(clientConfig, TimeoutSeconds, review))
    } catch (err) {
      throw fail(`failed: ${(err as Error).message}`)
    }
    if (converted.length !== sources.length) throw fail(`returned ${converted.length} objects, expected ${sources.length}`)
    return sources.map((source, index) => {
      try {
        const object = checkedConversion(source, converted[index], to.apiVersion)
        to.structural.prune(object)
        return freeze(object)
      } catch (err) {
        if (!(err instanceof InvalidConversion)) throw err
        if (err.what === 'type') throw fail(`returned invalid object at index ${index}: ${err.message}`)
        const where = sources.length === 1 ? '' : ` at index ${index}`
        throw fail(`returned invalid ${sources.length === 1 ? '' : 'converted '}${err.what}${where}: ${err.message}`)
      }
    })
  }
}

/** Whether the version shows the object only with the help of a webhook. An object without a type is none yet. */
export const needsWebhook = ({ conversion, apiVersion }: Definition, object: KubeObject): boolean =>
  conversion !== undefined && object.apiVersion !== undefined && object.apiVersion !== apiVersion

/** With the defaults of the version that it is stored in. */
const asStored = ({ stored }: Definition, object: KubeObject): KubeObject =>
  stored && stored.apiVersion === object.apiVersion ? inVersion(stored, object) : object
