/** What the names and selectors of those who make pods have in common. */
import { dnsLabelProblems, type LabelSelector, labelSelector, type Selector } from '@capstan/kube'

/** Names that become part of the names of pods had better be labels. */
export const podNameWarnings = ({ metadata: { name } }: { metadata: { name: string } }): string[] =>
  nameWarnings(name, 'Pod names and hostnames')

/** So do names of pods. */
export const hostnameWarnings = (name: string): string[] => nameWarnings(name, "the Pod's hostname")

function nameWarnings(name: string, use: string): string[] {
  const texts = dnsLabelProblems(name)
  const hint = `this is used in ${use}, which can result in surprising behavior; a DNS label is recommended`
  return texts.length === 0 ? [] : [`metadata.name: ${hint}: [${texts.join(' ')}]`]
}

/** A selector ready for use, or `undefined` for one that is not valid. */
export function usableSelector(selector: LabelSelector | undefined): Selector | undefined {
  try {
    return labelSelector(selector)
  } catch {
    return undefined
  }
}
