import manifest from '../package.json' with { type: 'json' }

/** The version of Capstan, and the releases that it follows. */
export const versions = {
  capstan: manifest.version,
  kubernetes: 'v1.36',
  clusterAPI: 'v1.14',
  contract: 'v1beta2',
  node: process.version,
} as const
