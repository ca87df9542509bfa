import type { Tags } from 'yaml'

const excludedTags = new Set([
  'tag:yaml.org,2002:timestamp',
  'tag:yaml.org,2002:binary',
  'tag:yaml.org,2002:omap',
  'tag:yaml.org,2002:pairs',
  'tag:yaml.org,2002:set',
])

/**
 * Options of the library `yaml` with which it parses values as sigs.k8s.io/yaml does: YAML 1.1, in which `yes` is true and `0644` is 420, but
 * dates and sexagesimal numbers such as `12:30` are strings, and the last of equal keys is used. Known differences from
 * sigs.k8s.io/yaml: `!!binary` is not decoded, and `0o7` is a string.
 */
export const yamlOptions = {
  version: '1.1',
  customTags: (tags: Tags): Tags =>
    tags.filter((tag) => typeof tag === 'string' || !(excludedTags.has(tag.tag) || ('format' in tag && tag.format === 'TIME'))),
  uniqueKeys: false,
  merge: true,
  logLevel: 'error',
} as const
