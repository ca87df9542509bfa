/** Steps of the recordings whose responses differ from the recorded responses, by file and reason. */
export const knownDifferences: { readonly [file: string]: { readonly [reason: string]: readonly string[] } } = {
  batch: {
    'upstream prints a pod template as Go structs': ['jobs / 26', 'jobs / 43'],
  },
  autoscaling: {
    'an empty list is treated as absent': ['autoscalers / 25'],
  },
  'small-groups': {
    'the sender of an empty list that is returned as null does not become its manager': ['endpoint slices / 2'],
  },
  storage: {
    'the sender of an empty list that is returned as null does not become its manager': ['csi nodes / 1'],
  },
  'other-clients': {
    'texts of YAML syntax errors differ': [6, 7, 8, 13, 14, 15, 16].map((step) => `applied YAML in flow style / ${step}`),
    'the JSON escape \\/ is accepted in YAML': ['applied YAML in flow style / 12'],
  },
  core: {
    'upstream prints changes as Go structs': [
      'pods that are changed / 2',
      'pods that are changed / 10',
      'volumes and claims / 3',
      'volumes and claims / 12',
    ],
  },
}
