/**
 * YAML as Kubernetes reads and writes it: YAML 1.1 scalars, so that `yes` is true and `0644` is 420, but neither dates nor
 * numbers of base 60.
 * Upstream: sigs.k8s.io/yaml.
 */
import type { Tags } from 'yaml'
import { parseDocument, stringify } from 'yaml'

/** @throws Error with Go's wording */
export function parseYAML(text: string, { strict = false } = {}): unknown {
  const document = parseDocument(text, {
    version: '1.1',
    customTags: goTags,
    uniqueKeys: strict,
    prettyErrors: false,
    merge: true,
  })
  const error = document.errors[0]
  if (error) throw new Error(`yaml: ${error.message}`)
  return document.toJS({ maxAliasCount: 1000 })
}

export const formatYAML = (value: unknown): string =>
  stringify(value, { version: '1.1', sortMapEntries: true, lineWidth: 0, aliasDuplicateObjects: false })

const notInGo = new Set([
  'tag:yaml.org,2002:timestamp',
  'tag:yaml.org,2002:binary',
  'tag:yaml.org,2002:omap',
  'tag:yaml.org,2002:pairs',
  'tag:yaml.org,2002:set',
])

const goTags = (tags: Tags): Tags =>
  tags.filter((tag) => typeof tag === 'string' || !(notInGo.has(tag.tag) || ('format' in tag && tag.format === 'TIME')))
