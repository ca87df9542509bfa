/** What the names and selectors of those who make pods have in common. */
import { dnsLabelProblems, type LabelSelector, labelSelector, type Selector } from '@capstan/kube'

/** Names that become part of the names of pods had better be labels. */
export function podNameWarnings({ metadata: { name } }: { metadata: { name: string } }): string[] {
  const texts = dnsLabelProblems(name)
  const hint = 'this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended'
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
