import { Cluster, ClusterClass, coreKinds } from '@capstan/api'
import { getCondition, type Kind, type KubeObject } from '@capstan/kube'
import {
  DevClusterTemplate,
  DevConfigTemplate,
  DevControlPlaneTemplate,
  DevMachineTemplate,
  devKinds,
  devTemplateKinds,
  type HookScript,
  scriptedRuntime,
  testEnv,
} from '@capstan/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { clusterTopologyAdmission } from '../topology/admission/admission.ts'
import { clusterClassAdmission } from './admission.ts'
import { createClusterClassController } from './controller.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const infra = 'infra.example.com/v1beta1'
const ref = (apiVersion: string, kind: string) => ({ templateRef: { apiVersion, kind, name: 'quick' } })
const classSpec = (overrides: object = {}) => ({
  infrastructure: ref(infra, 'DevClusterTemplate'),
  controlPlane: ref('controlplane.example.com/v1beta1', 'DevControlPlaneTemplate'),
  workers: {
    machineDeployments: [
      {
        class: 'default',
        bootstrap: ref('bootstrap.example.com/v1beta1', 'DevConfigTemplate'),
        infrastructure: ref(infra, 'DevMachineTemplate'),
      },
    ],
  },
  ...overrides,
})

async function anEnv(script: HookScript = {}) {
  const env = await testEnv({
    kinds: [...coreKinds, ...devKinds, ...devTemplateKinds],
    admission: [clusterTopologyAdmission(), clusterClassAdmission],
    controllers: [createClusterClassController({ runtime: scriptedRuntime(script) })],
  })
  closers.push(() => env.close())
  const key = { namespace: 'default', name: 'quick' }
  const create = async <T extends KubeObject>(kind: Kind<T>, name: string, fields: object) => {
    const created = await env.client.create(kind, { metadata: { name, namespace: 'default' }, ...fields } as never)
    await env.settle()
    return created
  }
  return {
    ...env,
    key,
    create,
    async templates(...kinds: readonly Kind[]) {
      for (const kind of kinds) await create(kind, 'quick', { spec: { template: { spec: {} } } })
    },
    /** Returns a condition as text, preceded by whether the controller has observed the current generation. */
    async condition(type: string) {
      const clusterClass = await env.client.get(ClusterClass, key)
      const { status, metadata } = clusterClass
      const condition = getCondition(clusterClass, type)
      const observed = status?.observedGeneration === metadata.generation ? 'observed' : 'not observed'
      return `${observed}, ${condition?.status} ${condition?.reason}${condition?.message ? `: ${condition.message}` : ''}`
    },
  }
}
const everyTemplate = [DevClusterTemplate, DevControlPlaneTemplate, DevMachineTemplate, DevConfigTemplate]

describe('the controller', () => {
  test('adopts the templates, and publishes variables sorted by name', async () => {
    const env = await anEnv()
    await env.templates(...everyTemplate)
    const schema = { openAPIV3Schema: { type: 'string' } }
    const created = await env.create(ClusterClass, 'quick', {
      spec: classSpec({
        variables: [
          { name: 'z', required: true, schema },
          { name: 'a', required: false, schema },
        ],
      }),
    })
    expect(await env.condition('RefVersionsUpToDate')).toBe('observed, True RefVersionsUpToDate')
    expect(await env.condition('VariablesReady')).toBe('observed, True VariablesReady')
    const { status } = await env.client.get(ClusterClass, env.key)
    expect(status?.variables).toEqual([
      { name: 'a', definitionsConflict: false, definitions: [{ from: 'inline', required: false, schema }] },
      { name: 'z', definitionsConflict: false, definitions: [{ from: 'inline', required: true, schema }] },
    ])
    for (const kind of everyTemplate) {
      const owners = (await env.client.get(kind, env.key)).metadata.ownerReferences
      expect(owners).toEqual([
        { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'ClusterClass', name: 'quick', uid: created.metadata.uid },
      ])
    }
  })

  test('reports a missing template, and continues when it is created', async () => {
    const env = await anEnv()
    await env.templates(...everyTemplate.slice(1))
    await env.create(ClusterClass, 'quick', { spec: classSpec() })
    expect(await env.condition('RefVersionsUpToDate')).toBe(
      'not observed, Unknown InternalError: Please check controller logs for errors',
    )
    await env.templates(DevClusterTemplate)
    expect(await env.condition('RefVersionsUpToDate')).toBe('observed, True RefVersionsUpToDate')
  })

  test('reports references to an old version', async () => {
    const env = await anEnv()
    await env.templates(...everyTemplate)
    const crd = {
      group: 'apiextensions.k8s.io',
      version: 'v1',
      kind: 'CustomResourceDefinition',
      plural: 'customresourcedefinitions',
      scope: 'Cluster',
    } as const
    const body = { metadata: { labels: { 'cluster.x-k8s.io/v1beta1': 'v1beta1', 'cluster.x-k8s.io/v1beta2': 'v1beta2' } } }
    await env.client.patch(crd, { name: 'devclustertemplates.infra.example.com' }, { type: 'merge', body })
    await env.settle()
    await env.create(ClusterClass, 'quick', { spec: classSpec() })
    expect(await env.condition('RefVersionsUpToDate')).toBe(
      'observed, False RefVersionsNotUpToDate: The following templateRefs are not using the latest apiVersion:\n* DevClusterTemplate quick: current: v1beta1, latest: v1beta2',
    )
  })
})

describe('admission', () => {
  const patch = (definition: object, patchFields: object = {}) =>
    classSpec({ patches: [{ name: 'p', definitions: [definition], ...patchFields }] })
  const selector = { apiVersion: infra, kind: 'DevClusterTemplate', matchResources: { infrastructureCluster: true } }
  const add = { op: 'add', path: '/spec/template/spec/x', value: 1 }
  const variable = (name: string, schema: object) =>
    classSpec({ variables: [{ name, required: false, schema: { openAPIV3Schema: schema } }] })

  test.each([
    [
      'a patch that selects nothing',
      patch({ selector: { ...selector, matchResources: { machineDeploymentClass: { names: [] } } }, jsonPatches: [add] }),
      'machineDeploymentClass\\": {}',
    ],
    [
      'a CEL rule whose message has a line break',
      variable('a', { type: 'string', 'x-kubernetes-validations': [{ rule: 'true', message: 'two\nlines' }] }),
      'message must not contain line breaks',
    ],
    ['a reserved variable', variable('builtin', { type: 'string' }), '"builtin" is a reserved variable name'],
    ['a variable with a dot', variable('a.b', { type: 'string' }), 'variable name cannot contain "."'],
    ['a variable without a type', variable('a', { pattern: 'x' }), 'type: Required value'],
    [
      'a default that violates its schema',
      variable('a', { type: 'integer', default: 'x' }),
      'default: Invalid value: "string":  in body must be of type integer: "string"',
    ],
    [
      'an enumerated value that violates its schema',
      variable('a', { type: 'string', enum: ['ok', 3] }),
      'enum[1]: Invalid value: "integer":  in body must be of type string: "integer"',
    ],
    [
      'an invalid pattern',
      variable('a', { type: 'string', pattern: '(' }),
      'pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`',
    ],
    [
      'properties beside additionalProperties',
      variable('a', { type: 'object', properties: {}, additionalProperties: { type: 'string' } }),
      'additionalProperties and properties are mutually exclusive',
    ],
    [
      'a CEL rule that does not compile',
      variable('a', { type: 'string', 'x-kubernetes-validations': [{ rule: 'self.foo == 1' }] }),
      "compilation failed: ERROR: <input>:1:5: type 'string' does not support field selection",
    ],
    [
      'a default that violates a CEL rule',
      variable('a', { type: 'string', default: 'x', 'x-kubernetes-validations': [{ rule: "self != 'x'", message: 'no x' }] }),
      'default: Invalid value: "x": no x',
    ],
    [
      'a selector that matches no template',
      patch({ selector: { ...selector, kind: 'DevMachineTemplate' }, jsonPatches: [add] }),
      'selector is enabled but does not match the infrastructure ref',
    ],
    [
      'a class name pattern with two asterisks',
      patch({
        selector: { ...selector, matchResources: { machineDeploymentClass: { names: ['*a*'] } } },
        jsonPatches: [add],
      }),
      'names[0]: Invalid value: "*a*": selector can at most contain a single "*" rune',
    ],
    [
      'a class name pattern with an asterisk inside',
      patch({
        selector: { ...selector, matchResources: { machineDeploymentClass: { names: ['a*b'] } } },
        jsonPatches: [add],
      }),
      'names[0]: Invalid value: "a*b": "*" rune can only appear at the beginning, or ending of the selector',
    ],
    [
      'an invalid class name pattern, and does not check further patterns',
      patch({
        selector: { ...selector, matchResources: { machineDeploymentClass: { names: ['a b*', 'other'] } } },
        jsonPatches: [add],
      }),
      'is invalid: spec.patches[0].definitions[0].selector.matchResources.machineDeploymentClass.names[0]: Invalid value: "a b*": selector does not comply with the Kubernetes naming standards',
    ],
    [
      'a class name pattern that matches no class, although another pattern of the selector does',
      patch({
        selector: {
          ...selector,
          kind: 'DevMachineTemplate',
          matchResources: { machineDeploymentClass: { names: ['default', 'other-*'] } },
        },
        jsonPatches: [add],
      }),
      'is invalid: spec.patches[0].definitions[0].selector.matchResources.machineDeploymentClass.names[1]: Invalid value: "other-*": selector is enabled but matches neither the bootstrap ref nor the infrastructure ref of a MachineDeployment class',
    ],
    [
      'a patch outside of spec',
      patch({ selector, jsonPatches: [{ ...add, path: '/metadata/labels/x' }] }),
      'jsonPatch path must start with "/spec"',
    ],
    [
      'a patch of a list item by index',
      patch({ selector, jsonPatches: [{ ...add, path: '/spec/template/spec/l/3' }] }),
      'arrays can only be accessed using "0" (prepend) or "-" (append)',
    ],
    [
      'a replacement of a list item by a signed index',
      patch({ selector, jsonPatches: [{ ...add, op: 'replace', path: '/spec/template/spec/l/+1' }] }),
      'elements in arrays can not be accessed in a replace operation',
    ],
    [
      'a patch without a value',
      patch({ selector, jsonPatches: [{ op: 'add', path: add.path }] }),
      'jsonPatch must define one of value or valueFrom',
    ],
    [
      'a patch with the value of an unknown variable',
      patch({ selector, jsonPatches: [{ op: 'add', path: add.path, valueFrom: { variable: 'none.x' } }] }),
      'variable with name none.x cannot be found',
    ],
    [
      'a patch with the value of the variable builtin without a path',
      patch({ selector, jsonPatches: [{ op: 'add', path: add.path, valueFrom: { variable: 'builtin' } }] }),
      'variable with name builtin cannot be found',
    ],
    [
      'an external patch with definitions, and reports all errors of the patch',
      classSpec({
        patches: [
          {
            name: 'p',
            enabledIf: '{{ if }}',
            external: { discoverVariablesExtension: 'aaa.bbb' },
            definitions: [
              {
                selector: { ...selector, matchResources: { controlPlane: false } },
                jsonPatches: [{ ...add, path: '/metadata' }],
              },
            ],
          },
        ],
      }),
      /template can not be parsed.*only one of definitions or external can be defined.*must start with "\/spec".*no selector enabled.*one of validateTopologyExtension and generatePatchesExtension must be defined/s,
    ],
    [
      'a patch with the value of an unknown built-in variable',
      patch({ selector, jsonPatches: [{ op: 'add', path: add.path, valueFrom: { variable: 'builtin.cluster.age' } }] }),
      'not a defined builtin variable',
    ],
    [
      'a template that does not parse',
      patch({ selector, jsonPatches: [{ op: 'add', path: add.path, valueFrom: { template: '{{ if }}' } }] }),
      'template can not be parsed',
    ],
    [
      'an external patch without a handler',
      classSpec({ patches: [{ name: 'p', external: { discoverVariablesExtension: 'aaa.bbb' } }] }),
      'one of validateTopologyExtension and generatePatchesExtension must be defined',
    ],
    [
      'a naming template that renders no valid name',
      classSpec({ infrastructure: { ...ref(infra, 'DevClusterTemplate'), naming: { template: 'A_{{ .cluster.name }}' } } }),
      'a lowercase RFC 1123 subdomain must consist of',
    ],
  ])('rejects %s', async (_, spec, message) => {
    const env = await anEnv()
    await expect(env.create(ClusterClass, 'quick', { spec })).rejects.toThrow(message)
  })

  test.each([
    'cluster.metadata',
    'cluster.metadata.labels.team',
    'cluster.network.services[0]',
    'cluster.network.pods[0]',
    'machinePool.bootstrap',
  ])('rejects a patch with the value of builtin.%s, as upstream', async (path) => {
    const env = await anEnv()
    const jsonPatch = { op: 'add', path: add.path, valueFrom: { variable: `builtin.${path}` } }
    const spec = patch({ selector, jsonPatches: [jsonPatch] })
    await expect(env.create(ClusterClass, 'quick', { spec })).rejects.toThrow('not a defined builtin variable')
  })

  test('accepts a valid class', async () => {
    const env = await anEnv()
    const spec = patch(
      {
        selector,
        jsonPatches: [
          add,
          { op: 'add', path: '/spec/template/spec/y', valueFrom: { variable: 'builtin.cluster.metadata.labels' } },
          { op: 'replace', path: '/spec/template/spec/l/-', value: 1 },
          { op: 'add', path: '/spec/template/spec/l/00', value: 1 },
        ],
      },
      { enabledIf: '{{ .builtin.cluster.name }}' },
    )
    await expect(env.create(ClusterClass, 'quick', { spec })).resolves.toBeDefined()
  })

  test('rejects deleting a ClusterClass that a Cluster uses, or removing a worker class or Kubernetes version that the Cluster uses', async () => {
    const env = await anEnv()
    await env.templates(...everyTemplate)
    await env.create(ClusterClass, 'quick', { spec: classSpec() })
    const topology = {
      classRef: { name: 'quick' },
      version: 'v1.34.0',
      workers: { machineDeployments: [{ class: 'default', name: 'md-0' }] },
    }
    await env.create(Cluster, 'demo', { spec: { topology } })
    await expect(env.client.delete(ClusterClass, env.key)).rejects.toMatchObject({
      code: 403,
      message: expect.stringContaining('ClusterClass cannot be deleted because it is used by Cluster(s): default/demo'),
    })
    const body = { spec: { workers: null } }
    await expect(env.client.patch(ClusterClass, env.key, { type: 'merge', body })).rejects.toThrow(
      'MachineDeploymentClass "default" cannot be deleted because it is used by Cluster "demo"',
    )
    const setVersions = (kubernetesVersions: string[]) =>
      env.client.patch(ClusterClass, env.key, { type: 'merge', body: { spec: { kubernetesVersions } } })
    await expect(setVersions(['v1.35.0'])).rejects.toThrow(
      'spec.kubernetesVersions: Forbidden: Kubernetes Version v1.34.0 is used by Cluster "demo" but not set in ClusterClass',
    )
    await expect(setVersions(['v1.34.0', 'v1.35.0'])).resolves.toBeDefined()
  })
})

describe('admission rejects an update of a class in use', () => {
  const pool = (name: string) => ({
    class: name,
    bootstrap: ref('bootstrap.example.com/v1beta1', 'DevConfigTemplate'),
    infrastructure: ref(infra, 'DevMachineTemplate'),
  })
  const healthCheck = { checks: { nodeStartupTimeoutSeconds: 300 } }

  async function aUsedClass() {
    const env = await anEnv()
    await env.templates(...everyTemplate)
    const { workers, ...spec } = classSpec() as { workers: { machineDeployments: object[] } }
    const machineDeployments = workers.machineDeployments.map((workerClass) => ({ ...workerClass, healthCheck }))
    await env.create(ClusterClass, 'quick', {
      spec: { ...spec, workers: { machineDeployments, machinePools: [pool('pool')] } },
    })
    const topology = {
      classRef: { name: 'quick' },
      version: 'v1.34.0',
      workers: {
        machineDeployments: [{ class: 'default', name: 'md-0', replicas: 1, healthCheck: { enabled: true } }],
        machinePools: [{ class: 'pool', name: 'mp-0' }],
      },
    }
    await env.create(Cluster, 'demo', { spec: { topology } })
    /** Creates another Cluster of the class, with its own health check. */
    const createWith = (name: string, ownCheck: object) => {
      const machineDeployments = [{ class: 'default', name: 'md-0', replicas: 1, healthCheck: ownCheck }]
      return env.create(Cluster, name, { spec: { topology: { ...topology, workers: { machineDeployments } } } })
    }
    const change = (body: object) => env.client.patch(ClusterClass, env.key, { type: 'merge', body })
    return { change, createWith, machineDeployments }
  }

  test('that removes a class of MachinePools', async () => {
    const { change } = await aUsedClass()
    await expect(change({ spec: { workers: { machinePools: [pool('other')] } } })).rejects.toThrow(
      'spec.workers.machinePools: Forbidden: MachinePoolClass "pool" cannot be deleted because it is used by Cluster "demo"',
    )
  })

  test('that removes a health check that a Cluster enables', async () => {
    const { change, createWith, machineDeployments } = await aUsedClass()
    await createWith('disabled', { enabled: false })
    await createWith('own-check', { enabled: true, ...healthCheck })
    const withoutCheck = machineDeployments.map(({ healthCheck: _healthCheck, ...workerClass }) => workerClass)
    await expect(change({ spec: { workers: { machineDeployments: withoutCheck } } })).rejects.toThrow(
      'spec.workers.machineDeployments[default].healthCheck: Forbidden: healthCheck cannot be deleted because it is used by Cluster(s) "demo"',
    )
  })

  test('that adds an autoscaler limit to a worker class for which a Cluster sets replicas', async () => {
    const { change, machineDeployments } = await aUsedClass()
    const metadata = { annotations: { 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size': '1' } }
    const autoscaled = machineDeployments.map((workerClass) => ({ ...workerClass, metadata }))
    await expect(change({ spec: { workers: { machineDeployments: autoscaled } } })).rejects.toThrow(
      'spec.topology.workers.machineDeployments[md-0].replicas: Invalid value: 1: cannot be set',
    )
  })
})

describe('variables of extensions', () => {
  const external = { generatePatchesExtension: 'gen.ext', discoverVariablesExtension: 'vars.ext' }
  const patches = [{ name: 'disks', external: { ...external, settings: { region: 'b' } } }]
  const text = (keywords: object = {}) => ({ openAPIV3Schema: { type: 'string', ...keywords } })
  const variablesOf = async (env: Awaited<ReturnType<typeof anEnv>>) =>
    (await env.client.get(ClusterClass, env.key)).status?.variables?.map(
      ({ name, definitions, definitionsConflict }) =>
        `${name}: ${definitions.map(({ from }) => from).join(', ')}${definitionsConflict ? ' in conflict' : ''}`,
    )

  test('are published beside those of the class, and discovered once', async () => {
    let calls = 0
    const env = await anEnv({
      DiscoverVariables: () => {
        calls++
        return {
          response: {
            variables: [
              { name: 'size', schema: text() },
              { name: 'zone', schema: text() },
            ],
          },
        }
      },
    })
    await env.templates(DevClusterTemplate, DevControlPlaneTemplate, DevConfigTemplate, DevMachineTemplate)
    const variables = [{ name: 'zone', required: false, schema: text({ uniqueItems: false }) }]
    await env.create(ClusterClass, 'quick', { spec: classSpec({ patches, variables }) })
    expect(await variablesOf(env)).toEqual(['size: disks', 'zone: inline, disks'])
    expect(await env.condition('VariablesReady')).toBe('observed, True VariablesReady')
    expect(calls).toBe(1)
  })

  test('are discovered again after a failure that the failure policy ignores', async () => {
    const env = await anEnv({
      DiscoverVariables: ({ nth }) =>
        nth === 1 ? { ignored: true } : { response: { variables: [{ name: 'size', schema: text() }] } },
    })
    await env.templates(DevClusterTemplate, DevControlPlaneTemplate, DevConfigTemplate, DevMachineTemplate)
    await env.create(ClusterClass, 'quick', { spec: classSpec({ patches }) })
    await env.client.patch(ClusterClass, env.key, { type: 'merge', body: { metadata: { labels: { changed: 'yes' } } } })
    await env.settle()
    expect(await variablesOf(env)).toEqual(['size: disks'])
  })

  test('that differ from those of the class are a conflict', async () => {
    const env = await anEnv({ DiscoverVariables: () => ({ response: { variables: [{ name: 'zone', schema: text() }] } }) })
    await env.templates(DevClusterTemplate, DevControlPlaneTemplate, DevConfigTemplate, DevMachineTemplate)
    await env.create(ClusterClass, 'quick', {
      spec: classSpec({ patches, variables: [{ name: 'zone', required: true, schema: text() }] }),
    })
    expect(await variablesOf(env)).toEqual(['zone: inline, disks in conflict'])
    expect(await env.condition('VariablesReady')).toMatch(
      'False VariableDiscoveryFailed: VariableDiscovery failed: the following variables have conflicting schemas: zone',
    )
  })

  test('that are invalid are reported and not published', async () => {
    const env = await anEnv({ DiscoverVariables: () => ({ response: { variables: [{ name: 'a.b', schema: text() }] } }) })
    await env.templates(DevClusterTemplate, DevControlPlaneTemplate, DevConfigTemplate, DevMachineTemplate)
    await env.create(ClusterClass, 'quick', { spec: classSpec({ patches }) })
    expect(await variablesOf(env)).toBeUndefined()
    expect(await env.condition('VariablesReady')).toMatch(
      'False VariableDiscoveryFailed: VariableDiscovery failed: disks.variables[a.b]',
    )
  })

  test('cannot be discovered when the extension fails: the condition names the patch', async () => {
    const env = await anEnv({
      DiscoverVariables: () => {
        throw new Error('no route to host')
      },
    })
    await env.templates(DevClusterTemplate, DevControlPlaneTemplate, DevConfigTemplate, DevMachineTemplate)
    await env.create(ClusterClass, 'quick', { spec: classSpec({ patches }) })
    expect(await env.condition('VariablesReady')).toMatch(
      'False VariableDiscoveryFailed: VariableDiscovery failed: failed to call DiscoverVariables for patch disks: no route to host',
    )
  })

  test('cannot be discovered when several calls fail: the condition lists all failed calls, but no invalid variables of other patches', async () => {
    const env = await anEnv({
      DiscoverVariables: ({ nth }) => {
        // Only the call for the second patch succeeds. Its response is cached.
        if (nth === 2) return { response: { variables: [{ name: 'a.b', schema: text() }] } }
        throw new Error('no route to host')
      },
    })
    await env.templates(DevClusterTemplate, DevControlPlaneTemplate, DevConfigTemplate, DevMachineTemplate)
    const failing = (name: string) => ({ name, external: { ...external, settings: { of: name } } })
    const spec = classSpec({ patches: [failing('nets'), ...patches, failing('zones')] })
    await env.create(ClusterClass, 'quick', { spec })
    const failed = (patch: string) => `failed to call DiscoverVariables for patch ${patch}: no route to host`
    expect(await env.condition('VariablesReady')).toContain(`VariableDiscovery failed: [${failed('nets')}, ${failed('zones')}]`)
  })
})
