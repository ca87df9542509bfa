import manifest from '../package.json' with { type: 'json' }

/** The versions of Capstan and of the running Node, the releases that Capstan follows, and the newest contract version that its core supports. */
export const versions = {
  capstan: manifest.version,
  kubernetes: 'v1.36',
  clusterAPI: 'v1.14',
  contract: 'v1beta2',
  node: process.version,
} as const
