import { describe, expect, test } from 'vitest'
import type { PodSpec, PodTemplateSpec } from '../schemas/types.ts'
import { podWarnings, templateWarnings } from './warnings.ts'

const container = (name: string, fields: object = {}) => ({ name, image: 'i', ...fields })
const template = (spec: object, annotations: { [name: string]: string } = {}): PodTemplateSpec => ({
  metadata: { annotations } as PodTemplateSpec['metadata'],
  spec: { containers: [container('c')], ...spec } as PodSpec,
})
const term = (key: string) => ({ matchExpressions: [{ key, operator: 'Exists' }] })
const ports = (...containerPorts: object[]) => ({ containers: [container('c', { ports: containerPorts })] })

test.each<[string, object, string[]]>([
  ['nothing for a plain pod', {}, []],
  [
    'deprecated node labels',
    {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term('beta.kubernetes.io/arch')] },
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: term('kubernetes.io/arch') }],
        },
      },
    },
    [
      'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead',
    ],
  ],
  [
    'affinity without a selector',
    { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone' }] } } },
    [
      'spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod',
    ],
  ],
  [
    'conflicting ports',
    ports(
      { containerPort: 80, protocol: 'TCP', hostPort: 8080 },
      { containerPort: 80, protocol: 'UDP', hostPort: 8080 },
      { containerPort: 80, protocol: 'TCP', hostPort: 8080 },
      { containerPort: 80, protocol: 'TCP', hostPort: 8080, hostIP: '10.0.0.1' },
      { containerPort: 80, protocol: 'TCP', hostPort: 8081 },
    ),
    [
      'spec.containers[0].ports[2]: duplicate port definition with spec.containers[0].ports[0]',
      'spec.containers[0].ports[3]: dangerously ambiguous port definition with spec.containers[0].ports[0]',
      'spec.containers[0].ports[3]: dangerously ambiguous port definition with spec.containers[0].ports[2]',
    ],
  ],
  [
    'fractions of a byte',
    { containers: [container('c', { resources: { limits: { memory: '128m', cpu: '128m' }, requests: { memory: '1Ki' } } })] },
    ['spec.containers[0].resources.limits[memory]: fractional byte value "128m" is invalid, must be an integer'],
  ],
  [
    'a deprecated volume',
    { volumes: [{ name: 'v', rbd: {} }] },
    ['spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+'],
  ],
])('podWarnings reports %s', (_, spec, expected) => expect(podWarnings('', template(spec))).toEqual(expected))

test('templateWarnings returns warnings only for a new or changed object', () => {
  const bad = template({ terminationGracePeriodSeconds: -1 })
  const at = (generation: number) => ({ metadata: { generation } })
  const texts = [
    'spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1',
  ]
  expect(templateWarnings('spec.template', bad, at(1), undefined)).toEqual(texts)
  expect(templateWarnings('spec.template', bad, at(2), at(1))).toEqual(texts)
  expect(templateWarnings('spec.template', bad, at(1), at(1))).toEqual([])
})

/** The lists are so long that quadratic work would make these tests slow. */
describe('podWarnings returns at most 1,000 warnings', () => {
  const warningsOfMany = (port: (index: number) => object) =>
    podWarnings('', template(ports(...Array.from({ length: 60_000 }, (_, index) => port(index)))))
  const secondPort = 'spec.containers[0].ports[1]: '

  test.each<[string, (index: number) => object, number, string | undefined]>([
    [
      'equal ports',
      () => ({ containerPort: 80, protocol: 'TCP' }),
      1000,
      `${secondPort}duplicate port definition with spec.containers[0].ports[0]`,
    ],
    [
      'ports of different host addresses',
      (index) => ({
        containerPort: 80,
        protocol: 'TCP',
        hostPort: 80,
        hostIP: `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`,
      }),
      0,
      undefined,
    ],
    ['different host ports', (index) => ({ containerPort: 80, protocol: 'TCP', hostPort: index + 1 }), 0, undefined],
    [
      'equal names',
      (index) => ({ containerPort: index, protocol: 'TCP', name: 'web' }),
      1000,
      `${secondPort}duplicate port name "web" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]`,
    ],
  ])('for %s', (_, port, count, text) => {
    const warnings = warningsOfMany(port)
    expect(warnings).toHaveLength(count)
    expect(warnings[0]).toBe(text)
  })

  test('for 90,000 equal image pull secrets and 60,000 environment variables', () => {
    const imagePullSecrets = Array.from({ length: 90_000 }, () => ({ name: 's' }))
    expect(podWarnings('', template({ imagePullSecrets }))).toHaveLength(1000)
    const env = Array.from({ length: 60_000 }, (_, index) => ({ name: `N${index}` }))
    expect(podWarnings('', template({ containers: [container('c', { env })] }))).toEqual([])
  })
})

test('a conflict of host ports is found, whichever of the two ports has a host address', () => {
  const [plain, addressed] = [
    { containerPort: 80, hostPort: 80 },
    { containerPort: 80, hostPort: 80, hostIP: '10.0.0.1' },
  ]
  for (const pair of [
    [plain, addressed],
    [addressed, plain],
  ])
    expect(podWarnings('', template(ports(...pair)))).toEqual([
      'spec.containers[0].ports[1]: dangerously ambiguous port definition with spec.containers[0].ports[0]',
    ])
})
