import { describe, expect, test } from 'vitest'
import type { PodSpec } from '../schemas/types.ts'
import { hostProcessErrors, hostUsersErrors, platformErrors, windowsOptionErrors } from './platforms.ts'
import { sysctlErrors } from './sysctls.ts'

const texts = (errors: readonly { field: string; text: string }[]) => errors.map(({ field, text }) => `${field}: ${text}`)
const spec = (fields: object) => ({ containers: [{ name: 'a' }, { name: 'b' }], ...fields }) as PodSpec
const hostProcess = (value: boolean) => ({ windowsOptions: { hostProcess: value } })
const containers = (...contexts: object[]) => ({ containers: contexts.map((securityContext) => ({ securityContext })) })

describe('host processes on Windows', () => {
  const all =
    'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers'
  const network = 'spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers'
  test.each<[string, object, string[]]>([
    ['are not required', {}, []],
    ['are allowed with hostNetwork', { hostNetwork: true, securityContext: hostProcess(true) }, []],
    ['are rejected without hostNetwork', { securityContext: hostProcess(true) }, [network]],
    ['are rejected beside an ordinary container', { hostNetwork: true, ...containers(hostProcess(true), {}) }, [all]],
    [
      'cause both errors without hostNetwork and beside an ordinary container',
      containers(hostProcess(true), hostProcess(false)),
      [all, network],
    ],
    [
      'are rejected if a container contradicts its pod',
      { hostNetwork: true, securityContext: hostProcess(true), ...containers({}, hostProcess(false)) },
      [
        'spec.containers[1].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if both are specified, was true',
        all,
      ],
    ],
  ])('%s', (_, fields, expected) => expect(texts(hostProcessErrors('spec', spec(fields)))).toEqual(expected))
})

test('a pod in a user namespace can neither share other namespaces of the host nor use block devices', () => {
  const shared = { hostNetwork: true, hostPID: true, hostIPC: true, containers: [{ volumeDevices: [{}] }] }
  expect(hostUsersErrors('spec', spec(shared))).toEqual([])
  expect(texts(hostUsersErrors('spec', spec({ ...shared, hostUsers: false })))).toEqual(
    ['hostNetwork', 'HostPID', 'HostIPC', 'containers[0].volumeDevices'].map(
      (field) => `spec.${field}: Forbidden: when \`hostUsers\` is false`,
    ),
  )
})

describe('a pod', () => {
  const windows = 'Forbidden: cannot be set for a windows pod'
  const linux = 'Forbidden: windows options cannot be set for a linux pod'
  test.each<[string, object, string[]]>([
    ['can omit its operating system', {}, []],
    ['must name its operating system in `os`', { os: {} }, ['spec.os.name: Required value']],
    [
      'cannot have an unknown operating system',
      { os: { name: 'plan9' } },
      ['spec.os: Unsupported value: "plan9": supported values: "linux", "windows"'],
    ],
    ['of Linux can set a user ID', { os: { name: 'linux' }, securityContext: { runAsUser: 1 } }, []],
    [
      'of Linux cannot have windowsOptions',
      { os: { name: 'linux' }, securityContext: hostProcess(false), ...containers({}, hostProcess(false)) },
      [`spec.securityContext.windowsOptions: ${linux}`, `spec.containers[1].securityContext.windowsOptions: ${linux}`],
    ],
    [
      'of Windows can have windowsOptions, runAsNonRoot, and an empty list of sysctls',
      { os: { name: 'windows' }, securityContext: { ...hostProcess(false), runAsNonRoot: true, sysctls: [] } },
      [],
    ],
    [
      'of Windows cannot have fields that Windows does not support',
      {
        os: { name: 'windows' },
        hostUsers: true,
        hostPID: true,
        securityContext: { runAsGroup: 1, seccompProfile: {}, seLinuxOptions: {}, sysctls: [{ name: 'x' }] },
        ...containers({ runAsUser: 1, privileged: false, runAsNonRoot: true }),
      },
      [
        'securityContext.seLinuxOptions',
        'hostUsers',
        'hostPID',
        'securityContext.seccompProfile',
        'securityContext.sysctls',
        'securityContext.runAsGroup',
        'containers[0].securityContext.privileged',
        'containers[0].securityContext.runAsUser',
      ].map((field) => `spec.${field}: ${windows}`),
    ],
  ])('%s', (_, fields, expected) => expect(texts(platformErrors('spec', spec(fields)))).toEqual(expected))
})

describe('Windows options', () => {
  const long = 'x'.repeat(105)
  test.each<[string, string[]]>([
    ['user', []],
    ['DOMAIN\\user', []],
    ['some.example.com\\user', []],
    ['', ['runAsUserName cannot be an empty string']],
    ['a\u0007', ['runAsUserName cannot contain control characters']],
    ['a\\b\\c', ['runAsUserName cannot contain more than one backslash']],
    ['.d\\', ["runAsUserName's Domain doesn't match the NetBios nor the DNS format", "runAsUserName's User cannot be empty"]],
    [long, ["runAsUserName's User length must not be longer than 104 characters"]],
    ['. .', ["runAsUserName's User cannot contain only periods or spaces"]],
    ['a:b', ['runAsUserName\'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]']],
  ])('the user name %j has the errors %j', (runAsUserName, expected) => {
    expect(windowsOptionErrors('w', { runAsUserName }).map(({ text }) => text)).toEqual(
      expected.map((text) => `Invalid value: ${JSON.stringify(runAsUserName)}: ${text}`),
    )
  })

  test('the credential spec of a group-managed service account has a valid name, and is neither empty nor longer than 64 KiB', () => {
    expect(windowsOptionErrors('w', undefined)).toEqual([])
    expect(windowsOptionErrors('w', { gmsaCredentialSpec: 'x', gmsaCredentialSpecName: 'a.b' })).toEqual([])
    expect(texts(windowsOptionErrors('w', { gmsaCredentialSpec: '', gmsaCredentialSpecName: 'A' }))).toEqual([
      expect.stringMatching(/^w\.gmsaCredentialSpecName: Invalid value: "A": a lowercase RFC 1123 subdomain/),
      'w.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string',
    ])
    const [{ text } = { text: '' }] = windowsOptionErrors('w', { gmsaCredentialSpec: 'é'.repeat(32 * 1024 + 1) })
    expect(text).toMatch(/: gmsaCredentialSpec size must be under 64 KiB$/)
  })
})

describe('sysctls', () => {
  const errorTextsOf = (fields: object, ...names: string[]) =>
    sysctlErrors('s', spec({ ...fields, securityContext: { sysctls: names.map((name) => ({ name })) } })).map(({ text }) => text)
  const network = "may not be specified when 'hostNetwork' is true"
  const ipc = "may not be specified when 'hostIPC' is true"

  test.each<[object, string, string[]]>([
    [{}, 'net.core.x', []],
    [{ hostNetwork: true }, 'net.core.x', [network]],
    [{ hostNetwork: true }, 'net/ipv4/conf/eno2.100/rp_filter', [network]],
    [{ hostNetwork: true }, 'kernel.sem', []],
    [{ hostIPC: true }, 'kernel.sem', [ipc]],
    [{ hostIPC: true }, 'fs.mqueue.x', [ipc]],
    [{ hostIPC: true }, 'kernel.sem2', []],
  ])('a pod with %j and the sysctl %s has the errors %j', (fields, name, expected) => {
    expect(errorTextsOf(fields, name)).toEqual(expected.map((text) => `Invalid value: "${name}": ${text}`))
  })

  test('need unique and valid names', () => {
    expect(errorTextsOf({}, '', 'a.b', 'a.b', 'A')).toEqual([
      'Required value',
      'Duplicate value: "a.b"',
      expect.stringMatching(/^Invalid value: "A": must have at most 253 characters and match regex /),
    ])
  })
})
