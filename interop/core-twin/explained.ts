/**
 * Intended differences from upstream ("theirs" is upstream's, "ours" Capstan's). `npm run gen` generates the table in
 * `docs/reference/differences.md` from this list.
 */
import { CoreManagers, type Difference, RecordedWithoutChange } from './normalize.ts'

/** When and how often one side recorded the Event that the other side lacks. `count` is 0 for differences other than Events. */
export interface Recordings {
  readonly count: number
  /** Whether all recordings were in the step in which the topology created the object that the Event names. */
  readonly isOfCreation: boolean
}

export interface Explained {
  /** The behaviour that differs, as a heading. */
  readonly what: string
  /** Why Capstan behaves differently. */
  readonly reason: string
  /** The difference as visible to users. */
  readonly effect: string
  /** Names of the scripted cases to which this entry applies. It applies to all random cases, too. Default: all cases. */
  readonly cases?: readonly string[]
  /** Returns whether this entry explains a difference. `name` is that of the case. */
  matches(difference: Difference, name: string, recordings: Recordings): boolean
  /** Returns whether this entry explains that the two sides respond to a dry run with these error messages. Default: false. */
  readonly matchesResponses?: (theirs: string, ours: string) => boolean
}

/** Returns the path of the first field that an error names, up to the first index or key of a list. */
const fieldOf = (message: string): string | undefined => / is invalid: \[?([\w.]+)/.exec(message)?.[1]

/**
 * Whether the cause of a difference is that only Capstan treats a control plane of stand-alone Machines as initialized and
 * available.
 */
const isCausedByStandAloneMachines = ({ object, path }: Difference): boolean =>
  object === 'Events'
    ? / ControlPlaneInitialized of cluster-controller: /.test(path)
    : object.startsWith('Cluster ') &&
      /conditions\[(ControlPlane)?Available\]|initialization\.controlPlaneInitialized|managed by core Update status/.test(path)

/** Whether Capstan's schema rejects the field that a webhook of upstream rejects, or that the webhook drops because it is empty. */
function isRejectedBySchema(theirs: string, ours: string): boolean {
  const field = fieldOf(ours)
  if (field === undefined || ours.includes('denied the request')) return false
  // Upstream's webhook rejects the value, or drops an empty value that the schema requires.
  if (!theirs.includes(' denied the request: ') && !theirs.includes(': Required value')) return false
  const [, undecoded] = /json: cannot unmarshal \w+ into Go struct field \w+\.([\w.]+) of type/.exec(theirs) ?? []
  if (undecoded !== undefined) return isWithin(field, undecoded) && ours.includes('in body must be of type ')
  // This error of Go does not name the field.
  if (theirs.includes('denied the request: illegal base64 data')) return ours.includes('in body must be of type byte')
  const [, time] = /denied the request: parsing time ("[^"]*")/.exec(theirs) ?? []
  if (time !== undefined) return ours.includes(`in body must be of type date-time: ${time}`)
  const theirField = fieldOf(theirs)
  return (
    theirField !== undefined &&
    isWithin(field, theirField) &&
    /should be at least 1 chars long|should have at least 1 properties|: Required value|: Duplicate value: /.test(ours)
  )
}

const isWithin = (field: string, outer: string): boolean => field === outer || field.startsWith(`${outer}.`)

const isRejectedByOtherWebhook = (theirs: string, ours: string): boolean =>
  theirs !== ours &&
  theirs.replace('webhook "default.cluster.cluster.x-k8s.io"', 'webhook "validation.cluster.cluster.x-k8s.io"') === ours

/** Cases of Clusters whose control plane consists of Machines, or will consist of them. */
const hasStandAloneMachines: ReadonlySet<string> = new Set([
  'cluster-without-control-plane',
  'cluster-machines-as-control-plane',
  'cluster-kubeconfig-generated',
  'cluster-deleted-with-machines-and-pools',
])

/** Cases in which the topology of a Cluster is not generated in the first step, or never. */
const withoutTopology: ReadonlySet<string> = new Set([
  'topology-no-class',
  'topology-no-templates',
  'topology-no-templates-deleted',
  'topology-patch-fails',
  'topology-patch-index-of-text',
  'topology-patch-no-such-field',
  'topology-patch-definitions-fail',
  'topology-patch-template-fails',
  'topology-patch-enabled-fails',
  'topology-variables-conflict',
  'topology-control-plane-denied',
  'hooks-before-create-blocks',
  'hooks-before-create-fails',
  'hooks-before-create-blocks-deleted',
  'hooks-only-validation',
  'hooks-unknown-handler',
])

const Waiting = 'Waiting for cluster topology to be reconciled'
const InternalError = 'Please check controller logs for errors'

/** Whether a condition of a Cluster differs because upstream did not list the Machines and other objects of the Cluster. */
const isOfUnlistedObjects = ({ object, path, theirs, ours }: Difference): boolean => {
  if (!object.startsWith('Cluster ')) return false
  if (path === 'status.conditions[Available].message') {
    const listed = theirs?.split('\n').filter((line) => line !== `* WorkersAvailable: ${InternalError}`)
    return listed?.join('\n').replace(`InfrastructureReady: ${InternalError}`, `InfrastructureReady: ${Waiting}`) === ours
  }
  const [, field] =
    /^status\.conditions\[(?:WorkersAvailable|InfrastructureReady|RollingOut|Remediating|Scaling(?:Up|Down)|(?:ControlPlane|Worker)Machines(?:Ready|UpToDate))\]\.(\w+)$/.exec(
      path,
    ) ?? []
  return (
    (field === 'reason' && theirs === 'InternalError') ||
    (field === 'status' && theirs === 'Unknown') ||
    (field === 'message' && theirs === InternalError && (ours === '' || ours === Waiting))
  )
}

/** Whether a difference is in a field of a Cluster or MachineDeployment that counts or summarizes Machines and MachineSets. */
const isOfAggregation = ({ object, path }: Difference): boolean =>
  (object.startsWith('Cluster ') &&
    /(^| \.)status\.(workers|conditions\[(RollingOut|Scaling(Up|Down)|WorkerMachines(Ready|UpToDate))\])/.test(path)) ||
  (object.startsWith('MachineDeployment ') &&
    /^status\.(\w+Replicas|conditions\[(RollingOut|Machines(Ready|UpToDate))\]|deprecated\.v1beta1\.)/.test(path))

/** Whether the cause of a difference is that only Capstan deletes a MachineSet with its Machine. */
const isCausedByDeletion = (difference: Difference): boolean =>
  isOfAggregation(difference) ||
  (/^(Machine|MachineSet|StubConfig|StubMachine) /.test(difference.object) && difference.ours === undefined)

/** Whether the cause of a difference is that Capstan replaces a Machine that upstream moves to another MachineSet. */
const isCausedByReplacement = (difference: Difference): boolean =>
  isOfAggregation(difference) ||
  /^(Machine|MachineSet|StubConfig|StubMachine|Node) /.test(difference.object) ||
  / SuccessfulDelete of machineset-controller: /.test(difference.path)

/** Matches the names of some of the random cases in which no MachineDeployment is paused. */
const withoutPausedDeployments = /-(machines|health-checks|external-remediation)(-restart)?$/

const isRandom = (name: string): boolean => name.startsWith('random-')

/** Cases in which a Cluster has at least ten events with the same reason. */
const hasManyEvents: ReadonlySet<string> = new Set([
  'topology-upgrade-three-workers',
  'topology-upgrade-concurrency',
  'topology-upgrade-hold',
  'topology-upgrade-defer',
  'topology-upgrade-and-change',
  'topology-many-names',
  'topology-upgrade-five-minors',
  'topology-control-plane-denied',
  'topology-deployment-denied',
  'topology-pool-denied',
  'topology-rollout-denied',
  'topology-control-plane-rollout-denied',
])

export const explained: readonly Explained[] = [
  {
    what: 'Field manager of updates',
    reason:
      'upstream names the field manager of writes other than server-side apply after its program file, `manager`. It adds the finalizers of a new MachineSet in separate writes by two controllers, and either of them may write first',
    effect:
      '`metadata.managedFields` lists the same fields under `capstan`; a finalizer of a MachineSet may be listed only under the field manager of the MachineDeployment controller',
    matches: ({ object, path, theirs, ours }) =>
      path.startsWith('metadata.managedFields[core Update') &&
      (theirs ?? CoreManagers.theirs) === CoreManagers.theirs &&
      (ours ?? CoreManagers.ours) === CoreManagers.ours &&
      ((theirs !== undefined && ours !== undefined) ||
        (object.startsWith('MachineSet ') && path.startsWith('metadata.managedFields[core Update] .metadata.finalizers'))),
  },
  {
    what: '`observedGeneration`',
    reason:
      'upstream computes conditions before it writes spec, and does not update some of them afterwards. It writes `status.observedGeneration` of a ClusterResourceSet only together with another change of the status',
    effect:
      'after a reconcile that changes spec, such as one that copies the endpoint or a providerID, the conditions `ControlPlaneInitialized`, `RemoteConnectionProbe`, `NodeReady` and `NodeHealthy` have the new generation; a ClusterResourceSet has the current `status.observedGeneration`, also before it selects a Cluster',
    matches: ({ object, path, theirs, ours }) =>
      (/^(Cluster|Machine) /.test(object) &&
        /conditions\[(ControlPlaneInitialized|RemoteConnectionProbe|NodeReady|NodeHealthy)\]\.observedGeneration$/.test(path) &&
        theirs === 'stale' &&
        ours === 'current') ||
      (object.startsWith('ClusterResourceSet ') &&
        /(^| \.)status\.observedGeneration$/.test(path) &&
        (theirs === undefined || (theirs === 'stale' && ours === 'current'))),
  },
  {
    what: 'Missing control plane, and Clusters without infrastructure or control plane provider',
    reason:
      'upstream reports an internal error for a Cluster without `infrastructureRef`, although it marks the infrastructure as provisioned. For a missing control plane, it checks the infrastructure cluster instead, and reports an internal error. It also reports an internal error for a control plane of stand-alone Machines, and does not record in the status that this control plane is initialized',
    effect:
      'the condition `ControlPlaneInitialized` of a Cluster names the missing control plane. Without `infrastructureRef`, a Cluster has `InfrastructureReady` and becomes `Available`. Without a control plane provider, `ControlPlaneAvailable` waits for a control plane Node; then the Cluster is `Available`, has `status.initialization.controlPlaneInitialized` and the event `ControlPlaneInitialized`',
    matches: (difference, name) =>
      (difference.object.startsWith('Cluster ') &&
        /conditions\[ControlPlaneInitialized\]\.(message|reason)$/.test(difference.path) &&
        (difference.theirs === 'InternalError' || difference.theirs === 'Please check controller logs for errors')) ||
      (name === 'cluster-without-infrastructure' && /conditions\[(InfrastructureReady|Available)\]/.test(difference.path)) ||
      (hasStandAloneMachines.has(name) && isCausedByStandAloneMachines(difference)),
  },
  {
    what: 'Writes with a stale cache',
    reason:
      'upstream updates a MachineSet that it has just deleted, creates the MachineHealthCheck of a deleted MachineDeployment again, and compares the desired MachineDeployment or MachinePool with an outdated one from its cache, for example one without the latest revision annotation. Capstan waits until its cache contains its own writes',
    effect:
      'the MachineHealthCheck of a MachineDeployment that a user has deleted does not remain; no event `FailedUpdate` with `Operation cannot be fulfilled` or `no new finalizers can be added` on MachineDeployments, and no event `TopologyUpdate` of a MachineDeployment or MachinePool for an update that changes nothing',
    matches: ({ object, path, theirs, ours }, name) =>
      (name === 'topology-deployment-deleted' && object.startsWith('MachineHealthCheck ') && ours === undefined) ||
      (object === 'Events' &&
        ours === undefined &&
        (/ Warning FailedUpdate .*(Operation cannot be fulfilled|no new finalizers can be added)/.test(path) ||
          theirs === RecordedWithoutChange)),
  },
  {
    what: 'Values that the schema rejects',
    reason:
      "upstream's mutating webhooks decode an object before the API server validates it: they reject the first value that Go cannot decode, drop empty strings and objects, and complete an empty version to `v`, which another webhook rejects",
    effect:
      'the API server rejects the object with 422 and names every wrong field; an empty value of a required field has the error of its minimum length',
    matches: ({ path, theirs, ours }) => path === 'response' && isRejectedBySchema(theirs ?? '', ours ?? ''),
    matchesResponses: isRejectedBySchema,
  },
  {
    what: 'No shim for new topologies',
    reason:
      'upstream creates a Secret as the temporary owner of the objects of a new Cluster, and then updates these objects once more (ADR 6). Capstan computes the names of objects of a topology from their purpose, so that it finds them again after a crash',
    effect:
      'no Secret `<cluster>-shim`, and no event `TopologyUpdate` of infrastructure and control plane right after their creation. A MachineDeployment whose label `topology.cluster.x-k8s.io/owned` was removed gets it again; upstream creates a second one',
    matches: ({ object, path, ours }, name, { isOfCreation }) => {
      if (ours === undefined && object === 'Events')
        return (
          isOfCreation && /TopologyUpdate of topology\/cluster-controller: Updated Stub(Cluster|ControlPlane) "[^"]*"$/.test(path)
        )
      if (name === 'topology-control-plane-denied')
        return (
          (object === 'Secret c-shim' && ours === undefined) ||
          (object.startsWith('StubCluster ') && path.includes('metadata.ownerReferences'))
        )
      if (name === 'topology-deployment-disowned')
        return (
          (ours === undefined && object.endsWith(' (2)')) ||
          (object.startsWith('Cluster ') && /^status\.workers\..*eplicas$/.test(path))
        )
      return false
    },
  },
  {
    what: 'Records that upstream does not write',
    reason:
      'Capstan records the hooks that block a Cluster or a Machine, that BeforeClusterCreate has allowed the creation, when an extension was discovered, why a Machine was not updated in place, and the parts of a patch that were dropped',
    effect:
      'annotations `runtime.capstan.dev/*` on Clusters, ExtensionConfigs and Machines, `AfterControlPlaneInitialized` in `runtime.cluster.x-k8s.io/pending-hooks` as soon as a Cluster may be created, events `InPlaceUpdateNotPossible` and `FailedCanUpdateMachineSet` on MachineDeployments and `PatchPartsIgnored` on Clusters',
    matches: ({ object, path, theirs, ours }) =>
      (theirs === undefined &&
        ((path.endsWith('runtime.cluster.x-k8s.io/pending-hooks') &&
          (ours === 'AfterControlPlaneInitialized' || ours === CoreManagers.ours)) ||
          (/^(Cluster|ExtensionConfig|Machine) /.test(object) && path.includes('metadata.annotations.runtime.capstan.dev/')) ||
          (object === 'Events' &&
            / (Normal InPlaceUpdateNotPossible|Warning FailedCanUpdateMachineSet|Warning PatchPartsIgnored) /.test(path)))) ||
      // The first writer of an annotation owns `metadata.annotations`.
      (/^(Cluster|ExtensionConfig|Machine) /.test(object) &&
        /^metadata\.managedFields\[(core|twin) Update\] \.metadata\.annotations$/.test(path)),
  },
  {
    what: 'Events of short phases, and similar events',
    reason:
      "a phase of a new Cluster that ends before the next reconcile has no event. Upstream's library combines events of one object and reason from the tenth on, even if their texts differ, and records at most 25 of one object, then one in five minutes. Upstream reconciles an object at most once a second (a MachineHealthCheck: 15 s); Capstan continues a rollout as soon as a Machine becomes available",
    effect:
      'events `Pending` and `Provisioning` of Clusters may be missing. Each event is recorded with its own text; upstream combines it into one that begins with `(combined from similar events)`, or omits it. Events `SuccessfulScale` of a MachineDeployment may name smaller steps. `RemediationRestricted` may name other numbers',
    matches: ({ object, path, theirs, ours }, name, { count }) =>
      object === 'Events' &&
      ((count === 1 && /Normal (Pending|Provisioning) of cluster-controller/.test(path)) ||
        (isRandom(name) && / SuccessfulScale of machinedeployment-controller: /.test(path)) ||
        (isRandom(name) && theirs === undefined && / RemediationRestricted of /.test(path)) ||
        ((hasManyEvents.has(name) || isRandom(name)) &&
          (ours === undefined
            ? /\(combined from similar events\)/.test(path)
            : theirs === undefined &&
              / Topology(Create|Update|Delete) of topology\/cluster-controller: (Created|Updated|Deleted) /.test(path)))),
  },
  {
    what: 'Deleted templates of a ClusterClass',
    reason: 'upstream does not watch templates: it reports a deleted one when it reconciles the class for another reason',
    effect: 'the condition `RefVersionsUpToDate` of a ClusterClass becomes Unknown as soon as one of its templates is deleted',
    matches: ({ object, path }) => object.startsWith('ClusterClass ') && /conditions\[RefVersionsUpToDate\]/.test(path),
    cases: ['topology-template-deleted'],
  },
  {
    what: 'Clusters whose topology has not been generated',
    reason:
      'upstream does not list the Machines and other objects of such a Cluster, and reports internal errors. Its webhook rejects the updates of its own controllers while the class is missing',
    effect:
      'conditions report that there are no workers; a Cluster whose class is missing has its finalizer, conditions and phase',
    matches: (difference, name) =>
      (name === 'topology-no-class' && difference.object.startsWith('Cluster ')) ||
      (withoutTopology.has(name) && isOfUnlistedObjects(difference)),
  },
  {
    what: 'Work that upstream cannot complete',
    reason:
      'upstream retries three actions forever: to delete a MachineSet whose MachineDeployment does not exist; to update a Machine in place whose new template is of another kind; to label the Nodes of a paused MachineDeployment that has a new template, because upstream has set the revision annotation of the MachineDeployment to the empty string',
    effect:
      'the MachineSet and its Machines are deleted; the Machine is replaced, with the event `InPlaceUpdateNotPossible`; new Nodes get their labels and annotations and lose the taint `node.cluster.x-k8s.io/uninitialized`',
    cases: [
      'machinedeployment-paused-new-template',
      'machineset-no-deployment-deleted',
      'in-place-other-infrastructure-kind',
      'in-place-other-bootstrap-kind',
    ],
    matches: (difference, name) => {
      const { object, path } = difference
      if (name === 'machinedeployment-paused-new-template' || isRandom(name))
        return (
          !withoutPausedDeployments.test(name) &&
          (/^Node .*-\*/.test(object) ||
            (object.startsWith('Machine ') &&
              /(^| \.)status\.(observedGeneration|deprecated\.v1beta1\.conditions\[NodeHealthy\])/.test(path)))
        )
      return name === 'machineset-no-deployment-deleted' ? isCausedByDeletion(difference) : isCausedByReplacement(difference)
    },
  },
  {
    what: 'Counts of replicas in v1beta1',
    reason:
      'upstream reads every Node from the workload cluster in every reconcile; Capstan counts Machines of a MachineSet by their condition `NodeReady`. Upstream computes the unavailable replicas of a MachinePool with the number of replicas before the last change, and does not correct the result',
    effect:
      'v1beta1 counts of ready and available replicas, and conditions computed from them, do not change with the Nodes of paused Machines; `unavailableReplicas` of a MachinePool is not -1',
    cases: ['healthcheck-paused-machines', 'machinepool-ids-of-nodes'],
    matches: ({ object, path }) =>
      (/^Machine(Set|Deployment) /.test(object) &&
        /^status\.deprecated\.v1beta1\.((ready|available|unavailable)Replicas$|conditions\[Resized\])/.test(path)) ||
      (object.startsWith('MachinePool ') && path.endsWith('status.deprecated.v1beta1.unavailableReplicas')),
  },
  {
    what: 'Health of Machines with external remediation',
    reason:
      'with `spec.remediation.templateRef`, upstream computes the health of each Machine, but does not write the result for a healthy Machine without a remediation request, nor for an unhealthy Machine whose request exists or cannot be created. After such an unhealthy Machine, it also skips the remaining unhealthy Machines',
    effect:
      'Machines have `HealthCheckSucceeded` from the first check, and `ExternallyRemediated` names a missing template, or a request that could not be created. Each unhealthy Machine has a request. `status.observedGeneration` of a MachineHealthCheck is current even if the kind of its template does not exist',
    cases: [
      'healthcheck-external',
      'healthcheck-external-no-template',
      'healthcheck-external-creation-denied',
      'healthcheck-external-request-deleted',
      'healthcheck-external-request-exists',
      'healthcheck-external-template-empty',
      'healthcheck-external-unknown-kind',
    ],
    matches: ({ object, path, theirs, ours }, name) =>
      (!isRandom(name) || name.includes('external-remediation')) &&
      (/HealthCheckSucceeded|ExternallyRemediated/.test(path) ||
        /HealthCheckSucceeded|UnhealthyNode/.test(ours ?? '') ||
        / MachineMarkedUnhealthy /.test(path) ||
        (object.startsWith('StubRemediation ') && theirs === undefined) ||
        (object.startsWith('MachineHealthCheck ') && path === 'status.observedGeneration' && theirs === 'stale') ||
        (path.endsWith('conditions[Remediating].message') && theirs === '') ||
        (/^Machine(Set)? /.test(object) && /^status\.deprecated\.v1beta1\.conditions\[(Machines)?Ready\]/.test(path))),
  },
  {
    what: 'Invalid input that upstream does not report',
    reason:
      'upstream copies addresses of a provider object that are invalid or more than 256, and values that are longer than the API server accepts; the API server then rejects the write. The reconcile of a MachinePool panics when its infrastructure reports a failure. A ClusterResourceSet reports that a JSON list was applied although it cannot be parsed',
    effect:
      '`InfrastructureReady` or `BootstrapConfigReady` of a Machine, or the v1beta1 condition `BootstrapReady` of a MachinePool, names the invalid field; values that were copied earlier remain, and the rest of the status is written. A Cluster waits for valid values. `status.deprecated.v1beta1` of a MachinePool has the failure. `ResourcesApplied` is not True after a JSON list that cannot be parsed',
    // No case has invalid addresses, because upstream's Machine, Node, Cluster and events would then depend on timing.
    cases: ['machinepool-infrastructure-failure', 'resourceset-broken-list'],
    matches: ({ object, path }, name) =>
      (name === 'machinepool-infrastructure-failure' &&
        /^(metadata\.managedFields\[core Update status\] \.)?status\.deprecated(\.|$)/.test(path)) ||
      (object.startsWith('ClusterResourceSet ') &&
        /ResourcesApplied|(^| \.)status\.observedGeneration$|(^| \.)status\.deprecated(\.v1beta1)?(\.conditions)?$/.test(path)) ||
      (object.startsWith('ClusterResourceSetBinding ') && /\.(applied|hash)$/.test(path)),
  },
  {
    what: 'Invalid variables of topologies',
    reason:
      "upstream's defaulting webhook rejects them; Capstan's validating webhook rejects them, together with all other errors",
    effect: 'the same text, with `validation.cluster.cluster.x-k8s.io` as the name of the webhook',
    matches: ({ path, theirs, ours }) => path === 'response' && isRejectedByOtherWebhook(theirs ?? '', ours ?? ''),
    matchesResponses: (theirs, ours) => isRejectedByOtherWebhook(theirs, ours),
  },
]

const appliesTo = ({ cases }: Explained, name: string): boolean => cases === undefined || cases.includes(name) || isRandom(name)

/** Returns the entry that explains the different error messages of two responses to a dry run; `undefined` if there is none. */
export const explanationOfResponses = (theirs: string, ours: string, name: string): Explained | undefined =>
  explained.find((entry) => appliesTo(entry, name) && entry.matchesResponses?.(theirs, ours))

/** Returns the entry that explains a difference; `undefined` if there is none. */
export const explanationOf = (difference: Difference, name: string, recordings: Recordings): Explained | undefined =>
  explained.find((entry) => appliesTo(entry, name) && entry.matches(difference, name, recordings))
