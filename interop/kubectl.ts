/**
 * Runs kubectl and clusterctl on `capstan up --demo`: every command that `npm start` suggests, and further commands. Checks
 * their output and exit codes. Run by `npm run interop -- kubectl`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { toolPaths } from './shared/tools.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Step {
  readonly name: string
  readonly command: string
  /** Pattern of the expected output, or a function that returns the problem of the output; undefined if there is none. */
  readonly expect: RegExp | ((output: string) => string | undefined)
  /** Whether the command runs until it is stopped, so that its exit code is ignored. */
  readonly endless?: boolean
  /** Expected exit code; 0 when absent. */
  readonly code?: number
  /** Default: 30,000. */
  readonly timeoutMs?: number
}

/** Expected output of each suggested command, by the text that `npm start` prints with it. `after`: steps that run after the command. */
const suggested: Readonly<Record<string, Pick<Step, 'expect' | 'timeoutMs' | 'endless'> & { after?: readonly Step[] }>> = {
  'list the objects of the Cluster': {
    expect:
      /cluster\.cluster\.x-k8s\.io\/demo[\s\S]*machinedeployment\.cluster\.x-k8s\.io\/demo-steady[\s\S]*machinepool\.cluster\.x-k8s\.io\/demo-pool\s[\s\S]*machine\.cluster\.x-k8s\.io\/demo-/,
  },
  'show its conditions': { expect: /Type:\s+TopologyReconciled/ },
  'watch its Machines (Ctrl-C stops the watch)': { expect: /^NAME\s+CLUSTER/, timeoutMs: 3000, endless: true },
  'wait until it is Available': { expect: /cluster\.cluster\.x-k8s\.io\/demo condition met/ },
  'list the Nodes of the workload cluster': {
    expect: (out) => (lines(out).filter((line) => / Ready /.test(line)).length === 5 ? undefined : 'expected five Ready nodes'),
  },
  'scale workers whose replicas the topology does not set': {
    expect: /machinedeployment\.cluster\.x-k8s\.io\/demo-elastic scaled/,
    after: [waitFor('{.status.availableReplicas}=3', 'machinedeployment/demo-elastic')],
  },
  'scale workers whose replicas the topology sets': {
    expect: /cluster\.cluster\.x-k8s\.io\/demo patched/,
    after: [waitFor('{.status.availableReplicas}=2', 'machinedeployment/demo-steady')],
  },
  'upgrade: control plane first, then workers, hooks in between': {
    expect: /cluster\.cluster\.x-k8s\.io\/demo patched/,
    after: [
      waitFor('{.spec.version}=v1.36.1', 'localcontrolplane/demo-control-plane'),
      waitFor('{.status.upToDateReplicas}=3', 'machinedeployment/demo-elastic'),
      waitFor('condition=TopologyReconciled', 'cluster/demo'),
      {
        name: 'no Machine has the old version',
        command: 'kubectl get machines -o jsonpath={.items[*].spec.version}',
        expect: (out) => (/v1\.36\.0/.test(out) ? 'a Machine still has v1.36.0' : undefined),
      },
    ],
  },
  'create a second Cluster of the same class': {
    expect: /cluster\.cluster\.x-k8s\.io\/second (created|serverside-applied)/,
    after: [
      {
        name: 'the second Cluster becomes Available',
        command: 'kubectl wait --for=condition=Available cluster/second --timeout=60s',
        expect: /condition met/,
      },
    ],
  },
  'delete the first Cluster with its Machines': {
    expect: /cluster\.cluster\.x-k8s\.io "demo" deleted/,
    timeoutMs: 60_000,
    after: [
      {
        name: 'the Machines, pools and Secrets of the Cluster are deleted',
        command:
          'kubectl get machinepools,machines,localmachinepools,localmachines,secrets -l cluster.x-k8s.io/cluster-name=demo',
        expect: /No resources found/,
      },
    ],
  },
}

/** Commands that run after the suggested commands. At their start, only the Cluster `second` exists. */
const furtherSteps: readonly Step[] = [
  { name: 'version', command: 'kubectl version', expect: /Server Version: v1\.36/ },
  {
    name: 'api-resources',
    command: 'kubectl api-resources --api-group=cluster.x-k8s.io',
    expect: /machinedeployments\s+md\s+cluster\.x-k8s\.io\/v1beta2\s+true\s+MachineDeployment/,
  },
  { name: 'explain', command: 'kubectl explain cluster.spec.topology', expect: /FIELDS:[\s\S]*classRef/ },
  { name: 'get wide', command: 'kubectl get machines -o wide', expect: /PROVIDER ?ID|PROVIDERID/i },
  { name: 'get yaml', command: 'kubectl get cluster second -o yaml', expect: /kind: Cluster[\s\S]*name: second/ },
  { name: 'get by label', command: 'kubectl get machines -l cluster.x-k8s.io/control-plane', expect: /second-control-plane/ },
  { name: 'get pools: the columns of upstream', command: 'kubectl get machinepools', expect: poolColumns(false) },
  { name: 'get pools wide: the columns of upstream', command: 'kubectl get mp -o wide', expect: poolColumns(true) },
  {
    name: 'clusterctl describes the pool, its Machine, its bootstrap config and its infrastructure',
    command: 'clusterctl describe cluster second --show-conditions all --echo',
    expect: allOf(
      /─MachinePool default\/second-pool, v1\.36\.0\s[^─]*─Paused\s+False\s/,
      /─Machine default\/second-pool-\S+, v1\.36\.0\s+1\s+1\s+1\s+1\s/,
      /─LocalBootstrapConfig default\/second-pool-\S+\s[^─]*─Ready\s+True\s/,
      /─LocalMachinePool default\/second-pool-\S+\s[^─]*─Ready\s+True\s/,
    ),
  },
  { name: 'get by short name', command: 'kubectl get ma,md,ms', expect: /machineset\.cluster\.x-k8s\.io/ },
  { name: 'get all namespaces in chunks', command: 'kubectl get machines -A --chunk-size=2', expect: /default\s+second-/ },
  {
    name: 'custom columns',
    command: 'kubectl get clusters -o custom-columns=NAME:.metadata.name,V:.spec.topology.version',
    expect: /second\s+v1\.36\.0/,
  },
  { name: 'label', command: 'kubectl label cluster second team=blue', expect: /labeled/ },
  { name: 'annotate', command: 'kubectl annotate cluster second note=hello', expect: /annotated/ },
  {
    name: 'patch merge',
    command: `kubectl patch cluster second --type=merge -p '{"metadata":{"labels":{"team":"red"}}}'`,
    expect: /patched/,
  },
  {
    name: 'patch json',
    command: `kubectl patch cluster second --type=json -p '[{"op":"remove","path":"/metadata/labels/team"}]'`,
    expect: /patched/,
  },
  {
    name: 'apply the same manifest',
    command: 'kubectl apply -f packages/lab/demo/second-cluster.yaml',
    expect: /second (unchanged|configured)/,
  },
  {
    name: 'apply server-side',
    command: 'kubectl apply --server-side --force-conflicts -f packages/lab/demo/second-cluster.yaml',
    expect: /serverside-applied/,
  },
  { name: 'diff shows nothing', command: 'kubectl diff -f packages/lab/demo/second-cluster.yaml', expect: /^\s*$/ },
  {
    name: 'create a config map',
    command: 'kubectl create -f -<<< \'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"b"}}\'',
    expect: /configmap\/c created/,
  },
  { name: 'strategic patch', command: `kubectl patch configmap c -p '{"data":{"x":"y"}}'`, expect: /patched/ },
  { name: 'jsonpath', command: 'kubectl get configmap c -o jsonpath={.data.x}', expect: /^y$/ },
  { name: 'replace', command: 'kubectl get configmap c -o yaml | kubectl replace -f -', expect: /replaced/ },
  { name: 'delete', command: 'kubectl delete configmap c', expect: /deleted/ },
  {
    name: 'not found',
    command: 'kubectl get configmap c',
    expect: /Error from server \(NotFound\): configmaps "c" not found/,
    code: 1,
  },
  {
    name: 'unknown field',
    command: `sed 's/topology:/topolgy:/' packages/lab/demo/cluster.yaml | kubectl apply -f -`,
    expect: /unknown field "spec\.topolgy"/,
    code: 1,
  },
  {
    name: 'wrong type',
    command: `sed 's/replicas: 1/replicas: "one"/' packages/lab/demo/second-cluster.yaml | kubectl apply --validate=false -f -`,
    expect: /must be of type integer/,
    code: 1,
  },
  {
    name: 'missing class',
    command: `sed 's/classRef: { name: demo }/classRef: { name: nowhere }/;s/name: second/name: third/' packages/lab/demo/second-cluster.yaml | kubectl apply -f -`,
    expect: /Warning: Cluster refers to ClusterClass default\/nowhere/,
  },
  { name: 'events', command: 'kubectl events --for cluster/second', expect: /TopologyCreate|Provisioned/ },
  {
    name: 'watch ends after its request timeout',
    command: 'kubectl get clusters -w --request-timeout=2s',
    expect: /second/,
    timeoutMs: 10_000,
  },
  {
    name: 'delete all Clusters',
    command: 'kubectl delete clusters --all --timeout=60s',
    expect: /"second" deleted/,
    timeoutMs: 70_000,
  },
]

function waitFor(condition: string, object: string): Step {
  const flag = condition.startsWith('condition=') ? `--for=${condition}` : `--for=jsonpath=${condition}`
  return {
    name: `${object} reaches ${condition}`,
    command: `kubectl wait '${flag}' ${object} --timeout=60s`,
    expect: /condition met/,
    timeoutMs: 70_000,
  }
}

/** Returns an `expect` function for output that matches all patterns. */
function allOf(...patterns: readonly RegExp[]): Step['expect'] {
  return (output) => {
    const missing = patterns.filter((pattern) => !pattern.test(output))
    return missing.length === 0 ? undefined : `output does not match ${missing.join(', ')}`
  }
}

/** Returns a pattern of a pool with one machine, in the printer columns of upstream's MachinePool CRD. */
function poolColumns(isWide: boolean): RegExp {
  const ifWide = (text: string) => (isWide ? [text] : [])
  const titles = ['NAME', 'CLUSTER', 'DESIRED', 'CURRENT', 'READY', 'AVAILABLE', 'UP-TO-DATE', ...ifWide('PAUSED')]
  const values = ['second-pool', 'second', '1', '1', '1', '1', '1', ...ifWide('False')]
  return new RegExp(
    `^${[...titles, 'PHASE', 'AGE', 'VERSION'].join('\\s+')}\\s*\n${[...values, 'Running', '\\S+', 'v1\\.36\\.0'].join('\\s+')}\\s*$`,
  )
}

/** Returns the lines that are not empty. */
const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '')

function problemOfOutput({ expect }: Step, output: string): string | undefined {
  if (!(expect instanceof RegExp)) return expect(output)
  return expect.test(output) ? undefined : `output does not match ${expect}`
}

/** Runs all steps; returns the numbers of passed and failed steps. */
export async function kubectlSuite(): Promise<{ passed: number; failed: number }> {
  const [kubectl, clusterctl] = await toolPaths('kubectl', 'clusterctl')
  const folder = mkdtempSync(join(tmpdir(), 'capstan-kubectl-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const demo = await startDemo(kubeconfig)
  let passed = 0
  let failed = 0
  const env = {
    ...process.env,
    KUBECONFIG: kubeconfig,
    HOME: folder,
    // Without network, the search for a newer release of clusterctl takes a minute.
    CLUSTERCTL_DISABLE_VERSIONCHECK: 'true',
    NO_COLOR: '1',
    PATH: `${join(kubectl, '..')}:${join(clusterctl, '..')}:${join(root, 'node_modules/.bin')}:${process.env.PATH}`,
  }

  const run = (step: Step): void => {
    const { stdout, stderr, status, signal } = spawnSync('bash', ['-c', step.command], {
      cwd: root,
      env,
      encoding: 'utf8',
      timeout: step.timeoutMs ?? 30_000,
      killSignal: 'SIGINT',
    })
    const output = `${stdout}${stderr}`
    const expectedCode = step.code ?? 0
    const hasExpectedCode = step.endless || status === expectedCode
    const problem = hasExpectedCode ? problemOfOutput(step, output) : `exit code ${status ?? signal}, expected ${expectedCode}`
    if (problem === undefined) {
      passed++
      console.log(`ok   ${step.name}`)
    } else {
      failed++
      console.log(`FAIL ${step.name}: ${problem}\n     $ ${step.command}\n${output.replace(/^/gm, '     ')}`)
    }
  }

  try {
    for (const { command, purpose } of demo.suggestions) {
      const expected = suggested[purpose]
      if (!expected) {
        failed++
        console.log(`FAIL npm start suggests a command for which this suite has no expected output: ${command}`)
        continue
      }
      run({ name: purpose, command, ...expected })
      for (const step of expected.after ?? []) run(step)
    }
    for (const step of furtherSteps) run(step)
  } finally {
    await demo.stop()
    rmSync(folder, { recursive: true, force: true })
    rmSync(join(root, 'demo.kubeconfig'), { force: true })
  }
  return { passed, failed }
}

/** A process of `capstan up --demo`. */
interface Demo {
  readonly suggestions: readonly { command: string; purpose: string }[]
  stop(): Promise<void>
}

/** Starts `capstan up --demo`. Resolves when the demo cluster is Available and all suggestions have been printed. */
function startDemo(kubeconfig: string): Promise<Demo> {
  const args = [
    'packages/cli/bin/capstan.js',
    'up',
    '--demo',
    '--memory',
    '--port',
    '0',
    '--kubeconfig',
    kubeconfig,
    '--output',
    'json',
  ]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const suggestions: { command: string; purpose: string }[] = []
  return new Promise((resolve, reject) => {
    void exited.then(() => reject(new Error(`capstan up ended with code ${child.exitCode} before the cluster was Available`)))
    createInterface({ input: child.stdout }).on('line', (text) => {
      const line = JSON.parse(text) as { event: string; command?: string; text: string }
      if (line.event === 'Suggestion') suggestions.push({ command: line.command!, purpose: line.text })
      if (line.event === 'Ready') {
        resolve({
          suggestions,
          async stop() {
            child.kill('SIGINT')
            await exited
          },
        })
      }
    })
  })
}
