/** Enforces the LimitRanges of a namespace on pods and PersistentVolumeClaims. Upstream: plugin/pkg/admission/limitranger, v1.36. */
import { appendAll, inPieces, merged, parseQuantity, type Work } from '@capstan/kube'
import { compareAmounts } from '../kinds/checks.ts'
import { podResources } from '../kinds/pod/resources.ts'
import type {
  Container,
  LimitRange,
  LimitRangeItem,
  PersistentVolumeClaim,
  Pod,
  ResourceRequirements,
} from '../kinds/schemas/types.ts'
import { forbidden, MaxObjectBytes, type Plugin, type PluginWrite, rejectTooLarge } from '@capstan/apiserver/kinds'

type Amounts = { readonly [name: string]: string | number }

const Annotation = 'kubernetes.io/limit-ranger'

export const limitRanger: Plugin = {
  name: 'LimitRanger',
  appliesTo: ({ storage }) => storage === 'pods' || storage === 'persistentvolumeclaims',
  async mutate(write) {
    if (write.info.storage !== 'pods' || !isChecked(write)) return
    await inPieces(write.clock, settingDefaults(write.object as unknown as Pod, rangesOf(write)))
  },
  async validate(write) {
    if (!isChecked(write)) return
    for (const { spec } of rangesOf(write)) {
      const problems =
        write.info.storage === 'pods'
          ? await inPieces(write.clock, findingPodProblems(write.object as unknown as Pod, spec.limits ?? []))
          : new Set(claimProblems(write.object as unknown as PersistentVolumeClaim, spec.limits ?? []))
      const texts = [...problems]
      if (texts.length > 0) throw forbidden(write, texts.length === 1 ? texts[0]! : `[${texts.join(', ')}]`)
    }
  },
}

/**
 * Reports whether the plugin handles a write. As upstream, updates of claims are checked, but not updates of pods, because they cannot change
 * resources. Unlike upstream, resizes of pods are not checked.
 */
const isChecked = ({ operation, subresource, info }: PluginWrite): boolean =>
  subresource === undefined && (operation === 'CREATE' || (operation === 'UPDATE' && info.storage !== 'pods'))

const rangesOf = ({ store, namespace }: PluginWrite): LimitRange[] =>
  store.list('limitranges', namespace) as unknown as LimitRange[]

/**
 * Sets the defaults of all ranges. As upstream, the annotation lists the defaults of the last range that sets any.
 * @throws StatusError when the names of the defaults alone make the pod too large
 */
function* settingDefaults(pod: Pod, ranges: readonly LimitRange[]): Work<void> {
  const { containers = [], initContainers = [] } = pod.spec
  /** Total length of the names of all defaults that were set. */
  let characters = 0
  for (const { spec } of ranges) {
    const items = (spec.limits ?? []).filter(({ type }) => type === 'Container')
    const defaultLimits: Amounts = merged(items.map((item) => item.default))
    const defaultRequests: Amounts = merged(items.map(({ defaultRequest }) => defaultRequest))
    const notes: string[] = []
    const fill = (container: Container, containerType: string): void => {
      const resources: ResourceRequirements = (container.resources ??= {})
      const add = (member: 'requests' | 'limits', amounts: Amounts): void => {
        const missing = Object.keys(amounts).filter((name) => resources[member]?.[name] === undefined)
        if (missing.length === 0) return
        resources[member] = { ...Object.fromEntries(missing.map((name) => [name, amounts[name]!])), ...resources[member] }
        const names = missing.sort().join(', ')
        characters += names.length
        notes.push(`${names} ${member === 'limits' ? 'limit' : 'request'} for ${containerType} ${container.name}`)
      }
      add('requests', defaultRequests)
      add('limits', defaultLimits)
    }
    for (const [index, container] of [...containers, ...initContainers].entries()) {
      fill(container, index < containers.length ? 'container' : 'init container')
      if (characters > MaxObjectBytes) rejectTooLarge(pod)
      yield
    }
    if (notes.length === 0) continue
    const text = `LimitRanger plugin set: ${notes.join('; ')}`
    pod.metadata.annotations = { ...pod.metadata.annotations, [Annotation]: text }
  }
}

/** Returns the texts of violated limits. Works in pieces, because each limit is compared with each container. */
function* findingPodProblems({ spec }: Pod, limits: readonly LimitRangeItem[]): Work<Set<string>> {
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])]
  const problems = new Set<string>()
  for (const item of limits) {
    const checked = item.type === 'Container' ? containers : item.type === 'Pod' ? [{ resources: podResources(spec) }] : []
    for (const { resources } of checked) {
      for (const problem of problemsOf(item, resources)) problems.add(problem)
      yield
    }
  }
  return problems
}

function claimProblems({ spec }: PersistentVolumeClaim, limits: readonly LimitRangeItem[]): string[] {
  const items = limits.filter(({ type }) => type === 'PersistentVolumeClaim')
  const requests = spec.resources.requests ?? {}
  return items.flatMap((item) => [
    ...Object.entries(item.min ?? {}).flatMap(([name, least]) => tooLittle(item.type, name, least, requests[name], undefined)),
    ...Object.entries(item.max ?? {}).flatMap(([name, most]) => {
      const start = `maximum ${name} usage per ${item.type} is ${most}`
      if (requests[name] === undefined) return [`${start}. No request is specified`]
      return compareAmounts(requests[name], most) > 0 ? [`${start}, but request is ${requests[name]}`] : []
    }),
  ])
}

function problemsOf(
  { type, min = {}, max = {}, maxLimitRequestRatio = {} }: LimitRangeItem,
  resources: ResourceRequirements,
): string[] {
  const { requests = {}, limits = {} } = resources
  const texts: string[] = []
  for (const [name, least] of Object.entries(min)) appendAll(texts, tooLittle(type, name, least, requests[name], limits[name]))
  for (const [name, most] of Object.entries(max)) {
    const start = `maximum ${name} usage per ${type} is ${most}`
    const [request, limit] = [requests[name], limits[name]]
    if (limit === undefined) texts.push(`${start}. No limit is specified`)
    else if (compareAmounts(limit, most) > 0) texts.push(`${start}, but limit is ${limit}`)
    else if (request !== undefined && compareAmounts(request, most) > 0) texts.push(`${start}, but request is ${request}`)
  }
  for (const [name, ratio] of Object.entries(maxLimitRequestRatio)) {
    const start = `${name} max limit to request ratio per ${type} is ${ratio}`
    const [request, limit] = [numberOf(requests[name]), numberOf(limits[name])]
    if (request === 0) texts.push(`${start}, but no request is specified or request is 0`)
    else if (limit === 0) texts.push(`${start}, but no limit is specified or limit is 0`)
    else if (limit / request > numberOf(ratio)) texts.push(`${start}, but provided ratio is ${(limit / request).toFixed(6)}`)
  }
  return texts
}

type Amount = string | number | undefined

function tooLittle(type: string, name: string, least: string | number, request: Amount, limit: Amount): string[] {
  const start = `minimum ${name} usage per ${type} is ${least}`
  if (request === undefined) return [`${start}. No request is specified`]
  if (limit !== undefined && compareAmounts(limit, least) < 0) return [`${start}, but limit is ${limit}`]
  return compareAmounts(request, least) < 0 ? [`${start}, but request is ${request}`] : []
}

const numberOf = (amount: Amount): number => (amount === undefined ? 0 : Number(parseQuantity(String(amount)).nano) / 1e9)
