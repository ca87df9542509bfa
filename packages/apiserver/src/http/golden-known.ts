/** Steps of the recordings with another response than the recorded one: by file and reason. */
export const knownDifferences: { readonly [file: string]: { readonly [reason: string]: readonly string[] } } = {
  batch: {
    'Go prints a pod template in the form of its own structs': ['jobs / 26', 'jobs / 43'],
  },
  autoscaling: {
    'an empty list is as if it were not there': ['autoscalers / 25'],
  },
  'small-groups': {
    'whoever sends an empty list that is shown as null does not become its owner': ['endpoint slices / 2'],
  },
  storage: {
    'whoever sends an empty list that is shown as null does not become its owner': ['csi nodes / 1'],
  },
  'other-clients': {
    'syntax errors of YAML have texts of their own': [6, 7, 8, 13, 14, 15, 16].map(
      (step) => `applied YAML in flow style / ${step}`,
    ),
    'the escape \\/ of JSON is read in YAML, too': ['applied YAML in flow style / 12'],
  },
  core: {
    'Go prints what has changed in the form of its own structs': [
      'pods that are changed / 2',
      'pods that are changed / 10',
      'volumes and claims / 3',
      'volumes and claims / 12',
    ],
  },
}
