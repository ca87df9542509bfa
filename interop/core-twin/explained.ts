/** Differences from upstream that are there on purpose. `docs/reference/differences.md` is made from this list by `npm run gen`. */
import type { Difference } from './normalize.ts'

export interface Explained {
  /** The behaviour that differs, as a heading. */
  readonly what: string
  /** Why Capstan does it otherwise. */
  readonly reason: string
  /** What a user sees. */
  readonly seen: string
  matches(difference: Difference): boolean
  /** Explains an answer as a whole: upstream's message and Capstan's. */
  readonly answers?: (theirs: string, ours: string) => boolean
}

export const explained: readonly Explained[] = [
  {
    what: 'Name of the field manager of updates',
    reason: 'upstream names the field manager of writes other than server-side apply after its program file, `manager`',
    seen: '`metadata.managedFields` lists such writes under `capstan`',
    matches: ({ path }) => /^metadata\.managedFields\[(capstan|manager) Update/.test(path),
  },
  {
    what: '`observedGeneration` of conditions of Clusters',
    reason: 'upstream writes spec after it has computed conditions, and then leaves some of them alone for ever',
    seen: 'after a reconcile that changes spec, such as one that copies the endpoint, `ControlPlaneInitialized` and `RemoteConnectionProbe` name the new generation',
    matches: ({ object, path, theirs, ours }) =>
      object.startsWith('Cluster ') &&
      /conditions\[(ControlPlaneInitialized|RemoteConnectionProbe)\]\.observedGeneration$/.test(path) &&
      theirs === 'stale' &&
      ours === 'current',
  },
  {
    what: 'Missing control plane',
    reason: 'upstream decides with whether the infrastructure cluster exists, and reports an internal error',
    seen: 'the condition `ControlPlaneInitialized` of a Cluster names the missing control plane',
    matches: ({ object, path, theirs }) =>
      object.startsWith('Cluster ') &&
      /conditions\[ControlPlaneInitialized\]\.(message|reason)$/.test(path) &&
      (theirs === 'InternalError' || theirs === 'Please check controller logs for errors'),
  },
  {
    what: 'Writes with a stale cache',
    reason:
      'upstream updates a MachineSet that it has just deleted, fails, and records an event; Capstan waits until its cache has its own writes',
    seen: 'no event `FailedUpdate` with `Operation cannot be fulfilled` on MachineDeployments',
    matches: ({ object, path, ours }) =>
      object === 'Events' && ours === undefined && / Warning FailedUpdate .*Operation cannot be fulfilled/.test(path),
  },
  {
    what: 'Values of a wrong type',
    reason:
      "upstream's webhooks decode an object before the API server validates it, and reject it with the first value that Go cannot decode",
    seen: 'the API server rejects the object with 422 and names every wrong field, where upstream answers 400',
    matches: () => false,
    answers: (theirs, ours) =>
      /denied the request: (json: cannot unmarshal|illegal base64 data|parsing time)/.test(theirs) && / is invalid: /.test(ours),
  },
  {
    what: 'Empty values of required fields',
    reason: "upstream's webhooks drop empty strings and objects before the API server validates what is left",
    seen: 'the error names the minimum length of the field, where upstream says `Required value`',
    matches: () => false,
    answers: (theirs, ours) =>
      / is invalid: .*Required value/.test(theirs) && / is invalid: .*should (be|have) at least 1 (chars|properties)/.test(ours),
  },
]

export const isExplainedAnswer = (theirs: string, ours: string): Explained | undefined =>
  explained.find((one) => one.answers?.(theirs, ours))

export const isExplained = (difference: Difference): Explained | undefined => explained.find((one) => one.matches(difference))
