/** Finds the registered handlers whose selectors match an object. */
import type { Hook } from '@capstan/api'
import { groupHookText as groupHook } from '@capstan/api'
import type { KubeObject } from '@capstan/kube'
import { keyOf, keyText } from '@capstan/kube'
import { HookFailed, withContext, withContextAsync } from './hook-failed.ts'
import type { HandlerRegistry, Registration } from './registry.ts'

type Selection = Pick<Registration, 'namespaceSelector' | 'objectSelector'>

export class SelectedHandlers {
  readonly #registry: HandlerRegistry
  readonly #namespaceLabels: (namespace: string) => Promise<{ readonly [key: string]: string }>

  /** `namespaceLabels` returns the labels of a namespace, and rejects if the namespace does not exist. */
  constructor(registry: HandlerRegistry, namespaceLabels: (namespace: string) => Promise<{ readonly [key: string]: string }>) {
    this.#registry = registry
    this.#namespaceLabels = namespaceLabels
  }

  /**
   * Returns the names of the handlers for the hook and object, in the order of calling.
   * @throws HookFailed `not-ready` before the registry's `warmUp`, or if an ExtensionConfig that was never discovered (a quarantined one)
   *   selects the object; `namespace` if the labels of the namespace are needed and cannot be read
   */
  async namesFor(hook: Hook, forObject: KubeObject): Promise<string[]> {
    const head = `failed to get extension handlers for hook ${JSON.stringify(groupHook(hook))}`
    const { namespace } = forObject.metadata
    for (const quarantined of this.#registry.quarantined()) {
      if (!matchesObject(quarantined, forObject)) continue
      if (!(await withContextAsync(head, this.#matchesNamespace(quarantined, namespace)))) continue
      const name = JSON.stringify(quarantined.extensionConfig)
      const text = `${head}: ExtensionConfig ${name} has never been discovered: ${quarantined.problem}`
      throw new HookFailed('not-ready', text, { extensionConfig: quarantined.extensionConfig })
    }
    const names: string[] = []
    for (const registration of withContext(head, () => this.#registry.list(hook))) {
      if (!matchesObject(registration, forObject)) continue
      const context = `${head}: failed to get extension handler ${JSON.stringify(registration.name)}`
      if (await withContextAsync(context, this.#matchesNamespace(registration, namespace))) names.push(registration.name)
    }
    return names
  }

  /**
   * Returns the handler of this name.
   * @throws HookFailed if the handler is not registered, is for another hook, or does not select the object; before the registry's `warmUp`;
   *   and if the labels of the namespace are needed and cannot be read
   */
  async get(name: string, hook: Hook, forObject: KubeObject): Promise<Registration> {
    const registration = this.#registry.get(name)
    if (registration.hook !== hook.name || registration.group !== hook.group) {
      throw new HookFailed('wrong-hook', `handler does not match GroupHook ${JSON.stringify(groupHook(hook))}`)
    }
    if (!(await this.#matchesNamespace(registration, forObject.metadata.namespace))) {
      throw new HookFailed('namespace', `namespaceSelector did not match object ${keyText(keyOf(forObject))}`)
    }
    if (!matchesObject(registration, forObject)) {
      throw new HookFailed('namespace', `objectSelector did not match object ${keyText(keyOf(forObject))}`)
    }
    return registration
  }

  async #matchesNamespace({ namespaceSelector }: Selection, namespace: string | undefined): Promise<boolean> {
    if (namespaceSelector.requirements.length === 0) return true
    try {
      return namespaceSelector.matches(await this.#namespaceLabels(namespace ?? ''))
    } catch (err) {
      const message = `failed to match namespace: failed to get namespace ${namespace}: ${(err as Error).message}`
      throw new HookFailed('namespace', message, { cause: err })
    }
  }
}

/** Whether the object selector matches. It applies to Clusters only, because other objects do not have the labels of their Cluster. */
const matchesObject = ({ objectSelector }: Selection, { kind, metadata }: KubeObject): boolean =>
  kind !== 'Cluster' || objectSelector.matches(metadata.labels)
