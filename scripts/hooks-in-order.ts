/** What the page of hooks says beside the declarations: when each lifecycle hook is called, and how often. */

const moments: readonly (readonly [hook: string, done: string, open: string])[] = [
  ['BeforeClusterCreate', 'the Cluster is there', 'nothing is made for it, and it refers to nothing'],
  ['AfterControlPlaneInitialized', 'the control plane is initialized for the first time', 'nothing waits for it'],
  [
    'BeforeClusterUpgrade',
    '`spec.topology.version` is another one; control plane and workers are at rest',
    'nothing of the new version, and nothing else that was changed with it: no new MachineDeployment, no new template',
  ],
  [
    'BeforeControlPlaneUpgrade',
    'BeforeClusterUpgrade let go; workers have caught up where the plan has them do so',
    'no Machine of the step',
  ],
  ['AfterControlPlaneUpgrade', 'all Machines of the control plane have the version of the step', 'no worker has it'],
  ['BeforeWorkersUpgrade', 'AfterControlPlaneUpgrade let go', 'no worker has the version'],
  [
    'AfterWorkersUpgrade',
    'all Machines of all workers have the version of the step',
    'the control plane has not begun the next step',
  ],
  [
    'AfterClusterUpgrade',
    'everything has the version that was asked for; what was changed with it is there',
    'another version is refused',
  ],
  ['BeforeClusterDelete', 'the Cluster is to be deleted', 'nothing that belongs to it is'],
]

export const hooksInOrder = (): string[] => [
  '## Lifecycle hooks in order',
  '',
  '| hook | what has happened when it is called | what has not |',
  '| --- | --- | --- |',
  ...moments.map(([hook, done, open]) => `| ${hook} | ${done} | ${open} |`),
  '',
  'BeforeControlPlaneUpgrade and AfterControlPlaneUpgrade belong to each step of the plan of the control plane, BeforeWorkersUpgrade and AfterWorkersUpgrade to each step',
  'of that of the workers. A hook that holds, fails, or cannot be reached holds back all that comes after it, but for AfterControlPlaneInitialized, which holds back nothing; one that has no handler, or',
  'none any more, lets go. A process that is killed at any write, or a leader that another one takes over from, changes none of this (`packages/testing/src/hook-traces.env.test.ts`). An answer',
  'that was under way then is asked for again: handlers must be idempotent.',
  '',
  '## How often they are called',
  '',
  'Once for each thing that happens. A Cluster that is created, upgraded by one version and deleted makes **6 calls** with the six hooks BeforeClusterCreate, AfterControlPlaneInitialized, BeforeClusterUpgrade,',
  'AfterControlPlaneUpgrade, AfterClusterUpgrade and BeforeClusterDelete registered, and 9 with all nine; each further step of an upgrade makes 2 more, and 2 more where workers take it. Fewer would leave a hook out. More',
  '(`packages/testing/src/hook-count.env.test.ts`):',
  '',
  '- one whenever the `retryAfterSeconds` of an answer are over, and not before: whatever happens to the Cluster meanwhile, the answer holds;',
  '- unless what would be asked has changed (spec, labels or annotations of the Cluster, the handlers, the ExtensionConfig behind them): then at once, and ever later where each answer leads to another change;',
  '- one when somebody wants it: `capstan hooks retry CLUSTER`;',
  '- after a failure, after 5 ms, doubled with each further one, at most 1000 s; while the breaker of a handler is open nobody is called;',
  '- one when the process ended before it heard the answer.',
  '',
  'Restarts, scaling, changes of labels or templates, and time make none. That a hook has let go is remembered on the Cluster (`runtime.cluster.x-k8s.io/pending-hooks`), where upstream asks BeforeClusterCreate again',
  'after a failed creation, and AfterControlPlaneInitialized twice.',
  '',
]
