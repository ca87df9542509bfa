/**
 * Runs tests of Capstan's controllers unchanged on a real kube-apiserver. The tests are written for the embedded server and a virtual clock.
 * One of them records a line for each change in a cluster's whole lifecycle. Apart from times and order, the lines must be the same as on the
 * embedded server.
 */
import { Checks } from './processes/capstan-process.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import { chosenByCommit, type Suite, type SuiteOptions } from './shared/suite.ts'
import { runTests } from './shared/tests.ts'

/**
 * Test files that run on the real server, besides `lifecycle`. Tests with `providerEnv`, such as those of the local provider's remediation,
 * always use the embedded server.
 */
const files = [
  'packages/controller/src/controller.env.test.ts',
  'packages/core/src/cluster/cluster.env.test.ts',
  'packages/core/src/clusterclass/clusterclass.env.test.ts',
  'packages/core/src/clusterresourceset/clusterresourceset.env.test.ts',
  'packages/core/src/extensionconfig/extensionconfig.env.test.ts',
  'packages/core/src/machine/drain/drain.env.test.ts',
  'packages/core/src/machine/in-place-update.env.test.ts',
  'packages/core/src/machine/machine.env.test.ts',
  'packages/core/src/machinedeployment/in-place.env.test.ts',
  'packages/core/src/machinedeployment/machinedeployment.env.test.ts',
  'packages/core/src/machinehealthcheck/machinehealthcheck.env.test.ts',
  'packages/core/src/machinepool/machinepool.env.test.ts',
  'packages/core/src/machineset/machineset.env.test.ts',
  'packages/core/src/topology/machine-pools.env.test.ts',
  'packages/core/src/topology/topology.env.test.ts',
]

/** Test file for the whole lifecycle of a cluster. It is part of every run. */
const lifecycle = 'packages/testing/src/lifecycle.env.test.ts'

/** Tests that need the embedded server, with the reason. */
const embeddedOnly: { readonly [test: string]: string } = {
  'a MachineDeployment > creates a MachineSet, reports progress, and writes nothing once the Machines are available':
    'its texts contain generated names, which depend on the order in which events arrive',
  'a MachineSet > creates Machines with their objects, and reports progress':
    'its texts contain generated names, which depend on the order in which events arrive',
  'commitChanges > keeps concurrent v1beta1 conditions of other writers, and writes the whole status in one patch':
    'it counts revisions between two writes',
  'a reconcile does not wait forever for a kind that is not served':
    'it counts turns of the event loop, and requests over a socket need more turns',
  'a stop between any two writes leads to the same result > no object is created twice, and no hook is skipped':
    'it reuses the stores of the server that was stopped',
  'a cluster is created, scaled, upgraded and deleted':
    'it compares times, which differ over HTTPS because of rate limits; `the lifecycle is the same over HTTPS` compares the lines without their times',
  'a restarted management cluster finds its Cluster Available, and does not change it':
    'it reads the stores of the embedded server',
  'reports why a topology cannot be created > an infrastructure kind that is not served, without waiting for it':
    'it deletes a CustomResourceDefinition, but the environment of a real server lists the objects of every kind',
}

/**
 * Timeout of one test in milliseconds. A test that takes a fraction of a second in process takes some seconds here, and longer on a
 * busy machine.
 */
const TestTimeout = 300_000

export const controllersSuite: Suite = {
  shows: "Capstan's controllers pass their tests on a real kube-apiserver",
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager'],
  minutes: 60,
  async run({ all }: SuiteOptions = {}) {
    const checks = new Checks()
    // Each test installs and removes all kinds, so that all files take longer on two cores than CI allows.
    const chosen = all ? [lifecycle, ...files] : [lifecycle, ...chosenByCommit(files, 7)]
    console.log(`${chosen.length} of ${files.length + 1} files${all ? '' : ': --all runs every one'}`)
    // Lists are read from etcd, so that a response is never older than a previous response.
    await using apiServer = await startRealApiServer({ flags: ['--watch-cache=false'], progress: console.log })
    // vitest joins the names of groups and tests with ` > `, earlier versions with a blank.
    const patterns = Object.keys(embeddedOnly).map((name) =>
      name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(' > ', '( > | )'),
    )
    const statuses = await runTests(
      [
        ...chosen,
        // All tests use the same server, so they run one after another.
        '--no-file-parallelism',
        // A test that timed out must not affect the next file.
        '--isolate',
        '--pool=forks',
        `--testNamePattern=^(?!(${patterns.join('|')})$)`,
        `--testTimeout=${TestTimeout}`,
      ],
      { CAPSTAN_TEST_KUBECONFIG: apiServer.kubeconfig },
    )
    for (const [name, status] of statuses) if (!embeddedOnly[name]) checks.check(name, status === 'passed', status)
    for (const [name, reason] of Object.entries(embeddedOnly)) {
      if (all) checks.check(`the excluded test "${name}" exists`, statuses.get(name) === 'skipped', statuses.get(name))
      console.log(`excluded: ${name}: ${reason}`)
    }
    return checks
  },
}
