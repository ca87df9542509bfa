/**
 * Steps in which Capstan's response differs from the recorded response of kube-apiserver, by recording and reason. A step is written as
 * `SCENARIO / INDEX OF THE STEP`; the first step has index 0.
 */
export const knownDifferences: { readonly [file: string]: { readonly [reason: string]: readonly string[] } } = {
  batch: {
    'upstream prints a pod template as Go structs': ['jobs / 26', 'jobs / 43'],
  },
  autoscaling: {
    'Capstan treats an empty list as absent': ['autoscalers / 25'],
  },
  'small-groups': {
    'Capstan records no field manager for a list that is empty in the request and null in the response': ['endpoint slices / 2'],
  },
  storage: {
    'Capstan records no field manager for a list that is empty in the request and null in the response': ['csi nodes / 1'],
  },
  'other-clients': {
    'texts of YAML syntax errors differ': [6, 7, 8, 13, 14, 15, 16].map((step) => `applied YAML in flow style / ${step}`),
    'Capstan accepts the JSON escape \\/ in YAML': ['applied YAML in flow style / 12'],
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
