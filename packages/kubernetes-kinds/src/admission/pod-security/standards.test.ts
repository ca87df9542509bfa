import { describe, expect, test } from 'vitest'
import type { PodLike } from './check.ts'
import type { Level } from './policy.ts'
import { checks, detailsOf, findings, reasonsOf } from './standards.ts'

interface PodFixture {
  readonly annotations?: { readonly [name: string]: string }
  /** Fields of the containers, which are named `a`, `b`, `c`; default: one container without further fields. */
  readonly containers?: readonly object[]
  readonly init?: object
  readonly ephemeral?: object
  readonly [member: string]: unknown
}

const podOf = ({ annotations = {}, containers = [{}], init, ephemeral, ...spec }: PodFixture): PodLike =>
  ({
    metadata: { annotations },
    spec: {
      ...(init ? { initContainers: [{ name: 'init', ...init }] } : {}),
      containers: containers.map((container, index) => ({ name: 'abc'[index], ...container })),
      ...(ephemeral ? { ephemeralContainers: [{ name: 'debug', ...ephemeral }] } : {}),
      ...spec,
    },
  }) as unknown as PodLike

const evaluation = (pod: PodFixture, standard: string): string => {
  const [level, version] = standard.split(':') as [Level, string]
  return detailsOf(findings(podOf(pod), { level, version }))
}

/** Returns an object with only the field `securityContext`, for a pod or a container. */
const sc = (securityContext: object) => ({ securityContext })
/** A pod that satisfies `restricted:latest`. */
const good: PodFixture = {
  ...sc({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } }),
  containers: [sc({ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } })],
}
const goodContainer = good.containers![0]!
const noSeccomp = { ...good, ...sc({ runAsNonRoot: true }) }
const unmasked = { containers: [{ ...sc({ procMount: 'Unmasked' }) }] }
const root = { ...good, ...sc({ runAsUser: 0, runAsNonRoot: false, seccompProfile: { type: 'Localhost' } }) }
const windows = { os: { name: 'windows' }, ...sc({ runAsNonRoot: true }) }
const sysctl = (name: string): PodFixture => sc({ sysctls: [{ name, value: '1' }] })
const probeWithHost = { livenessProbe: { httpGet: { host: 'x', port: 1 } } }
const seLinuxType = (type: string): PodFixture => sc({ seLinuxOptions: { type } })
const seccompKey = 'seccomp.security.alpha.kubernetes.io/pod'
const appArmorKey = 'container.apparmor.security.beta.kubernetes.io/a'

test.each<[string, PodFixture, string, string]>([
  ['a privileged pod', { hostPID: true, containers: [sc({ privileged: true })] }, 'privileged:latest', ''],
  ['a pod without violations', good, 'restricted:latest', ''],
  ['an ordinary pod', {}, 'baseline:latest', ''],
  [
    'an ordinary pod',
    {},
    'restricted:latest',
    'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), ' +
      'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), ' +
      'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), ' +
      'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  ],
  ['host namespaces', { hostNetwork: true, hostIPC: true }, 'baseline:v1.0', 'host namespaces (hostNetwork=true, hostIPC=true)'],
  ['host namespaces set to false', { hostNetwork: false, hostPID: false }, 'baseline:v1.0', ''],
  [
    'privileged containers of every type',
    {
      init: sc({ privileged: true }),
      containers: [sc({ privileged: false }), sc({ privileged: true })],
      ephemeral: sc({ privileged: true }),
    },
    'baseline:latest',
    'privileged (containers "init", "b", "debug" must not set securityContext.privileged=true)',
  ],
  [
    'capabilities',
    {
      containers: [sc({ capabilities: { add: ['SYS_TIME', 'CHOWN'] } }), sc({ capabilities: { add: ['NET_RAW', 'SYS_TIME'] } })],
    },
    'baseline:latest',
    'non-default capabilities (containers "a", "b" must not include "NET_RAW", "SYS_TIME" in securityContext.capabilities.add)',
  ],
  [
    'capabilities that are not dropped',
    {
      ...good,
      containers: [
        goodContainer,
        sc({ allowPrivilegeEscalation: false, capabilities: { drop: ['KILL'], add: ['KILL', 'NET_BIND_SERVICE'] } }),
      ],
    },
    'restricted:v1.22',
    'unrestricted capabilities (container "b" must set securityContext.capabilities.drop=["ALL"]; container "b" must not include "KILL" in securityContext.capabilities.add)',
  ],
  [
    'hostPath volumes',
    {
      volumes: [
        { name: 'v', hostPath: {} },
        { name: 'w', hostPath: {} },
      ],
    },
    'baseline:latest',
    'hostPath volumes (volumes "v", "w")',
  ],
  [
    'hostPath volumes, which the level restricted reports only as a restricted volume type',
    {
      ...good,
      volumes: [
        { name: 'v', nfs: {} },
        { name: 'w', hostPath: {} },
        { name: 'x', emptyDir: {} },
      ],
    },
    'restricted:latest',
    'restricted volume types (volumes "v", "w" use restricted volume types "hostPath", "nfs")',
  ],
  [
    'a volume of an unknown type',
    { ...good, volumes: [{ name: 'v', novel: {} }] },
    'restricted:latest',
    'restricted volume types (volume "v" uses restricted volume type "unknown")',
  ],
  [
    'host ports, which are sorted as strings',
    { containers: [{ ports: [{ hostPort: 9080 }, { hostPort: 0 }, {}] }, { ports: [{ hostPort: 10080 }, { hostPort: 9080 }] }] },
    'baseline:latest',
    'hostPort (containers "a", "b" use hostPorts 10080, 9080)',
  ],
  [
    'a host in a probe',
    { containers: [probeWithHost] },
    'baseline:latest',
    'probe or lifecycle host (container "a" uses probe or lifecycle host "x")',
  ],
  [
    'hosts in probes and lifecycle handlers',
    {
      containers: [
        {},
        { lifecycle: { preStop: { tcpSocket: { host: 'z' } } } },
        { lifecycle: { postStart: { httpGet: { host: 'y' } } } },
      ],
      init: probeWithHost,
    },
    'baseline:latest',
    'probe or lifecycle host (containers "b", "c", "init" use probe or lifecycle hosts "x", "y", "z")',
  ],
  [
    'probes with an empty or absent host',
    { containers: [{ livenessProbe: { httpGet: { host: '', port: 1 } }, startupProbe: { tcpSocket: {} } }] },
    'baseline:latest',
    '',
  ],
  [
    'AppArmor profiles in fields and annotations',
    {
      ...sc({ appArmorProfile: { type: 'Unconfined' } }),
      containers: [sc({ appArmorProfile: { type: 'Odd' } }), sc({ appArmorProfile: { type: 'Localhost' } })],
      annotations: { [appArmorKey]: 'unco"nfined' },
    },
    'baseline:latest',
    `forbidden AppArmor profiles (pod and container "a" and annotation must not set AppArmor profile type to "Odd", "Unconfined", "${appArmorKey}="unco\\"nfined"")`,
  ],
  ['AppArmor annotations with an allowed profile', { annotations: { [appArmorKey]: 'localhost/x' } }, 'baseline:latest', ''],
  [
    'SELinux types, user and role',
    {
      ...seLinuxType('spc_t'),
      containers: [sc({ seLinuxOptions: { user: 'u' } }), sc({ seLinuxOptions: { role: 'r', type: 'a_t' } })],
    },
    'baseline:latest',
    'seLinuxOptions (pod and containers "a", "b" set forbidden securityContext.seLinuxOptions: types "a_t", "spc_t"; user may not be set; role may not be set)',
  ],
  ['an SELinux level', sc({ seLinuxOptions: { level: 's0' } }), 'baseline:latest', ''],
  [
    'a forbidden seccomp profile of the pod',
    { ...sc({ seccompProfile: { type: 'Unconfined' } }), containers: [sc({ seccompProfile: { type: 'Localhost' } }), {}] },
    'baseline:latest',
    'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
  ],
  [
    'a seccomp profile for some containers only',
    {
      ...noSeccomp,
      containers: [
        goodContainer,
        { ...sc({ ...(goodContainer as { securityContext: object }).securityContext, seccompProfile: { type: 'Localhost' } }) },
      ],
    },
    'restricted:latest',
    'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  ],
  [
    'seccomp annotations of the pod, of its containers and of a missing container',
    {
      annotations: {
        [seccompKey]: 'unconfined',
        'container.seccomp.security.alpha.kubernetes.io/a': 'docker/default',
        'container.seccomp.security.alpha.kubernetes.io/b': 'other',
        'container.seccomp.security.alpha.kubernetes.io/z': 'other',
      },
      containers: [{}, {}],
    },
    'baseline:v1.18',
    `seccompProfile (forbidden annotations container.seccomp.security.alpha.kubernetes.io/b="other", ${seccompKey}="unconfined")`,
  ],
  [
    'Windows host processes',
    {
      ...sc({ windowsOptions: { hostProcess: true } }),
      containers: [sc({ windowsOptions: { hostProcess: true } }), sc({ windowsOptions: {} })],
    },
    'baseline:latest',
    'hostProcess (pod and container "a" must not set securityContext.windowsOptions.hostProcess=true)',
  ],
  [
    'root in containers and pod',
    {
      ...root,
      containers: [{ securityContext: { ...(goodContainer as { securityContext: object }).securityContext, runAsUser: 0 } }],
    },
    'restricted:latest',
    'runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), runAsUser=0 (pod and container "a" must not set runAsUser=0)',
  ],
])('the check of %s (%j) against the standard %s reports "%s"', (_, pod, standard, expected) =>
  expect(evaluation(pod, standard)).toBe(expected),
)

describe('a check applies the rules of the requested version', () => {
  test.each<[string, Level, PodFixture, string, string]>([
    ['allowPrivilegeEscalation != false', 'restricted', { containers: [{}] }, 'v1.7', 'v1.8'],
    ['unrestricted capabilities', 'restricted', {}, 'v1.21', 'v1.22'],
    ['seccompProfile', 'baseline', sc({ seccompProfile: { type: 'Unconfined' } }), 'v1.18', 'v1.19'],
    ['seccompProfile', 'restricted', noSeccomp, 'v1.18', 'v1.19'],
    ['runAsUser=0', 'restricted', root, 'v1.22', 'v1.23'],
    ['probe or lifecycle host', 'baseline', { containers: [probeWithHost] }, 'v1.33', 'v1.34'],
  ])(
    '"%s" of the level %s is not reported for %j in %s, but is reported in %s and in latest',
    (reason, level, pod, before, since) => {
      expect(reasons(level, pod, before)).not.toContain(reason)
      expect(reasons(level, pod, since)).toContain(reason)
      expect(reasons(level, pod, 'latest')).toContain(reason)
    },
  )

  test.each<[string, Level, PodFixture, string, string]>([
    ['seccompProfile', 'baseline', { annotations: { [seccompKey]: 'x' } }, 'v1.18', 'v1.19'],
    ['non-default capabilities', 'restricted', { containers: [sc({ capabilities: { add: ['KILL', 'X'] } })] }, 'v1.21', 'v1.22'],
    ['allowPrivilegeEscalation != false', 'restricted', windows, 'v1.24', 'v1.25'],
    ['unrestricted capabilities', 'restricted', windows, 'v1.24', 'v1.25'],
    ['seccompProfile', 'restricted', windows, 'v1.24', 'v1.25'],
    ['forbidden sysctls', 'baseline', sysctl('net.ipv4.ip_local_reserved_ports'), 'v1.26', 'v1.27'],
    ['forbidden sysctls', 'baseline', sysctl('net.ipv4.tcp_keepalive_time'), 'v1.28', 'v1.29'],
    ['seLinuxOptions', 'baseline', seLinuxType('container_engine_t'), 'v1.30', 'v1.31'],
    ['forbidden sysctls', 'restricted', sysctl('net.ipv4.tcp_rmem'), 'v1.31', 'v1.32'],
    ['procMount', 'baseline', { ...unmasked, hostUsers: false }, 'v1.34', 'v1.35'],
    ['runAsNonRoot != true', 'restricted', { ...root, hostUsers: false }, 'v1.34', 'v1.35'],
    ['runAsUser=0', 'restricted', { ...root, hostUsers: false }, 'v1.34', 'v1.35'],
  ])('"%s" of the level %s is reported for %j in %s, but not in %s', (reason, level, pod, before, since) => {
    expect(reasons(level, pod, before)).toContain(reason)
    expect(reasons(level, pod, since)).not.toContain(reason)
  })

  test('restricted reports an unmasked /proc once, even in a user namespace, and baseline reports it without a user namespace', () => {
    expect(
      reasons('restricted', { ...unmasked, hostUsers: false }, 'v1.35').filter((reason) => reason === 'procMount'),
    ).toHaveLength(1)
    expect(reasons('baseline', unmasked, 'latest')).toEqual(['procMount'])
  })

  test('all versions since the last change of a rule have the rules of latest', () => {
    for (const version of ['v1.35', 'v1.36', 'v1.99', 'v1.9223372036854775807']) {
      expect(evaluation({ hostPID: true, containers: [probeWithHost] }, `restricted:${version}`)).toBe(
        evaluation({ hostPID: true, containers: [probeWithHost] }, 'restricted:latest'),
      )
    }
  })

  const reasons = (level: Level, pod: PodFixture, version: string): string[] =>
    findings(podOf(pod), { level, version }).map(({ reason }) => reason)
})

test('sysctls are reported in the order of the pod', () => {
  const pod = sc({ sysctls: ['kernel.msgmax', 'kernel.shm_rmid_forced', 'a.b'].map((name) => ({ name })) })
  expect(evaluation(pod, 'baseline:latest')).toBe('forbidden sysctls (kernel.msgmax, a.b)')
})

test('reasonsOf joins the reasons of findings, without details', () => {
  expect(reasonsOf(findings(podOf({ hostPID: true, ...unmasked }), { level: 'baseline', version: 'latest' }))).toBe(
    'host namespaces, procMount',
  )
})

test('checks are ordered by level, baseline first, then by id', () => {
  const ids = (level: string) => checks.filter((check) => check.level === level).map(({ id }) => id)
  expect(checks.map(({ id }) => id)).toEqual([...ids('baseline').sort(), ...ids('restricted').sort()])
})
