/**
 * Sets overhead, node selector and tolerations of pods from their RuntimeClass. Upstream: plugin/pkg/admission/runtimeclass and
 * pkg/util/tolerations.
 */
import { equal } from '@capstan/kube'
import type { Pod, RuntimeClass, Toleration } from '../kinds/schemas/types.ts'
import { forbidden, type Plugin, type PluginWrite } from '@capstan/apiserver/kinds'

export const runtimeClass: Plugin = {
  name: 'RuntimeClass',
  concerns: ({ storage }) => storage === 'pods',
  mutate(write) {
    if (!isNewPod(write)) return
    const { spec } = podOf(write)
    const { overhead, scheduling } = classOf(write) ?? {}
    if (overhead?.podFixed) {
      if (isSet(spec.overhead) && !equal(spec.overhead, overhead.podFixed)) throw forbidden(write, mismatch)
      spec.overhead = { ...overhead.podFixed }
    }
    if (!scheduling) return
    const { nodeSelector = {}, tolerations = [] } = scheduling
    for (const [key, value] of Object.entries(nodeSelector)) {
      const given = spec.nodeSelector?.[key]
      if (given !== undefined && given !== value) {
        const [theirs, own] = [`runtimeClass.scheduling.nodeSelector[${key}]`, `pod.spec.nodeSelector[${key}]`]
        throw forbidden(write, `conflict: ${theirs} = ${value}; ${own} = ${given}`)
      }
    }
    if (isSet(nodeSelector)) spec.nodeSelector = { ...spec.nodeSelector, ...nodeSelector }
    const merged = merge([...(spec.tolerations ?? []), ...tolerations])
    if (merged.length > 0) spec.tolerations = merged
  },
  validate(write) {
    if (!isNewPod(write)) return
    const { overhead } = podOf(write).spec
    const wanted = classOf(write)?.overhead?.podFixed
    if (wanted) {
      if (!equal(overhead, wanted)) throw forbidden(write, mismatch)
    } else if (overhead) {
      throw forbidden(write, 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead')
    }
  },
}

const mismatch = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"

const isNewPod = ({ operation, subresource }: PluginWrite): boolean => operation === 'CREATE' && subresource === undefined
const podOf = ({ object }: PluginWrite): Pod => object as unknown as Pod
const isSet = (map: object | undefined): boolean => Object.keys(map ?? {}).length > 0

function classOf(write: PluginWrite): RuntimeClass | undefined {
  const name = podOf(write).spec.runtimeClassName
  if (name === undefined) return undefined
  const found = write.store.get({ resource: 'runtimeclasses.node.k8s.io', namespace: '', name })
  if (!found) throw forbidden(write, `pod rejected: RuntimeClass ${JSON.stringify(name)} not found`)
  return found as unknown as RuntimeClass
}

/** Drops tolerations that another one covers; of equal ones, the first stays. */
function merge(all: readonly Toleration[]): Toleration[] {
  const merged: Toleration[] = []
  for (const [index, one] of all.entries()) {
    const isKnown = merged.some((other) => covers(other, one))
    if (!isKnown && !all.slice(index + 1).some((other) => !equal(one, other) && covers(other, one))) merged.push(one)
  }
  return merged
}

function covers(wide: Toleration, one: Toleration): boolean {
  if (equal(wide, one)) return true
  const { key = '', effect = '', operator = '', value = '', tolerationSeconds } = wide
  if (key !== (one.key ?? '') && (key !== '' || operator !== 'Exists')) return false
  if (effect !== (one.effect ?? '') && effect !== '') return false
  if (effect === 'NoExecute' && tolerationSeconds !== undefined && !((one.tolerationSeconds ?? Infinity) <= tolerationSeconds))
    return false
  if (operator === 'Exists') return true
  return (operator === '' || operator === 'Equal') && one.operator === 'Equal' && (one.value ?? '') === value
}
