/**
 * Sets overhead, node selector and tolerations of new pods from their RuntimeClass, and rejects pods that contradict it. Upstream:
 * plugin/pkg/admission/runtimeclass.
 */
import { equal } from '@capstan/kube'
import type { Pod, RuntimeClass } from '../kinds/schemas/types.ts'
import { forbidden, type Plugin, type PluginWrite } from '@capstan/apiserver/kinds'
import { mergeTolerations } from './merge-tolerations.ts'

export const runtimeClass: Plugin = {
  name: 'RuntimeClass',
  appliesTo: ({ storage }) => storage === 'pods',
  mutate(write) {
    if (!isNewPod(write)) return
    const { spec } = podOf(write)
    const { overhead, scheduling } = classOf(write) ?? {}
    if (overhead?.podFixed) {
      if (hasEntries(spec.overhead) && !equal(spec.overhead, overhead.podFixed)) throw forbidden(write, mismatch)
      spec.overhead = { ...overhead.podFixed }
    }
    if (!scheduling) return
    const { nodeSelector = {}, tolerations = [] } = scheduling
    for (const [key, value] of Object.entries(nodeSelector)) {
      const podValue = spec.nodeSelector?.[key]
      if (podValue !== undefined && podValue !== value) {
        const [classField, podField] = [`runtimeClass.scheduling.nodeSelector[${key}]`, `pod.spec.nodeSelector[${key}]`]
        throw forbidden(write, `conflict: ${classField} = ${value}; ${podField} = ${podValue}`)
      }
    }
    if (hasEntries(nodeSelector)) spec.nodeSelector = { ...spec.nodeSelector, ...nodeSelector }
    const merged = mergeTolerations([...(spec.tolerations ?? []), ...tolerations])
    if (merged.length > 0) spec.tolerations = merged
  },
  validate(write) {
    if (!isNewPod(write)) return
    const { overhead } = podOf(write).spec
    const classOverhead = classOf(write)?.overhead?.podFixed
    if (classOverhead) {
      if (!equal(overhead, classOverhead)) throw forbidden(write, mismatch)
    } else if (overhead) {
      throw forbidden(write, 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead')
    }
  },
}

const mismatch = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"

const isNewPod = ({ operation, subresource }: PluginWrite): boolean => operation === 'CREATE' && subresource === undefined
const podOf = ({ object }: PluginWrite): Pod => object as unknown as Pod
const hasEntries = (map: object | undefined): boolean => Object.keys(map ?? {}).length > 0

function classOf(write: PluginWrite): RuntimeClass | undefined {
  const name = podOf(write).spec.runtimeClassName
  if (name === undefined) return undefined
  const runtimeClass = write.store.get({ resource: 'runtimeclasses.node.k8s.io', namespace: '', name })
  if (!runtimeClass) throw forbidden(write, `pod rejected: RuntimeClass ${JSON.stringify(name)} not found`)
  return runtimeClass as unknown as RuntimeClass
}
