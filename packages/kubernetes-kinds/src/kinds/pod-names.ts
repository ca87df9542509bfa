/** Warnings about the names of pods and of objects that create pods, and parsing of the selectors of such objects. */
import { dnsLabelProblems, type LabelSelector, labelSelector, type Selector } from '@capstan/kube'

/** Warns when a name that becomes part of pod names is not a DNS label. */
export const podNameWarnings = ({ metadata: { name } }: { metadata: { name: string } }): string[] =>
  nameWarnings(name, 'Pod names and hostnames')

/** Warns when the name of a pod is not a DNS label. */
export const hostnameWarnings = (name: string): string[] => nameWarnings(name, "the Pod's hostname")

function nameWarnings(name: string, use: string): string[] {
  const texts = dnsLabelProblems(name)
  const hint = `this is used in ${use}, which can result in surprising behavior; a DNS label is recommended`
  return texts.length === 0 ? [] : [`metadata.name: ${hint}: [${texts.join(' ')}]`]
}

/** Parses a selector; `undefined` for an invalid selector. */
export function usableSelector(selector: LabelSelector | undefined): Selector | undefined {
  try {
    return labelSelector(selector)
  } catch {
    return undefined
  }
}
