import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hours, type LogFields, type Logger, silent, systemClock, VirtualClock } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { presentFrom, servingCertificateFrom } from './certificate-files.ts'
import type { ServingCertificate } from './listen.ts'
import type { WatchedFiles } from './watch-files.ts'

let authority: CertifiedKey
const pairs: CertifiedKey[] = []
beforeAll(async () => {
  authority = await makeAuthority(systemClock, { commonName: 'test' })
  for (let i = 0; i < 3; i++)
    pairs.push(await issueCertificate(authority, systemClock, { commonName: `${i}`, usages: ['server'] }))
})

let folder: string
let used: ServingCertificate[]
let warnings: LogFields[]
let watched: WatchedFiles | undefined
let changed: (() => void) | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'capstan-certificates-'))
  used = []
  warnings = []
})
afterEach(() => {
  watched?.close()
  rmSync(folder, { recursive: true, force: true })
})

const log: Logger = {
  ...silent,
  warn(_message, fields = {}) {
    warnings.push(fields)
    changed?.()
  },
}
const files = (directory = folder) => ({ certificate: join(directory, 'tls.crt'), key: join(directory, 'tls.key') })
const write = ({ certificate, key }: CertifiedKey, directory = folder) => {
  writeFileSync(join(directory, 'tls.crt'), certificate)
  writeFileSync(join(directory, 'tls.key'), key)
}
const watch = async (paths: Parameters<typeof servingCertificateFrom>[0] = files()) => {
  watched = await servingCertificateFrom(
    paths,
    (serving) => {
      used.push(serving)
      changed?.()
    },
    log,
  )
}
/** Calls `isDone` now and after each new certificate and each warning; resolves when `isDone` returns true. */
const until = (isDone: () => boolean) =>
  new Promise<void>((resolve) => {
    changed = () => {
      if (isDone()) resolve()
    }
    changed()
  })
const inUse = () => used.at(-1)?.certificate

describe('certificates in files', () => {
  it('are reloaded when both files are rewritten, one after another', async () => {
    write(pairs[0]!)
    await watch()
    expect(inUse()).toBe(pairs[0]!.certificate)
    write(pairs[1]!)
    await until(() => inUse() === pairs[1]!.certificate)
    expect(used.at(-1)).toEqual(pairs[1])
  })

  it('are reloaded when Kubernetes swaps the contents of a mounted Secret', async () => {
    const version = (name: string, pair: CertifiedKey) => {
      mkdirSync(join(folder, name))
      write(pair, join(folder, name))
      symlinkSync(name, join(folder, '..data_tmp'))
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
    }
    version('..2026_01_01', pairs[0]!)
    for (const file of ['tls.crt', 'tls.key']) symlinkSync(join('..data', file), join(folder, file))
    await watch()
    expect(used).toEqual([pairs[0]])
    version('..2026_01_02', pairs[1]!)
    rmSync(join(folder, '..2026_01_01'), { recursive: true })
    await until(() => used.length === 2)
    version('..2026_01_03', pairs[2]!)
    await until(() => used.length === 3)
    expect(used).toEqual(pairs)
    // The swap is atomic, so certificate and key always match.
    expect(warnings).toEqual([])
  })

  it('are reloaded when their folder is replaced', async () => {
    const inside = join(folder, 'serving-certs')
    mkdirSync(inside)
    write(pairs[0]!, inside)
    await watch(files(inside))
    for (const pair of [pairs[1]!, pairs[2]!]) {
      renameSync(inside, `${inside}-old`)
      mkdirSync(`${inside}-new`)
      write(pair, `${inside}-new`)
      renameSync(`${inside}-new`, inside)
      await until(() => inUse() === pair.certificate)
      rmSync(`${inside}-old`, { recursive: true })
    }
  })

  it.each<[string, () => void, RegExp]>([
    [
      'tls.key contains the key of another certificate',
      () => writeFileSync(files().key, pairs[1]!.key),
      /the key in .*tls\.key does not belong to/,
    ],
    ['tls.key contains no key', () => writeFileSync(files().key, 'secret nonsense'), /tls\.key contains no private key$/],
    [
      'tls.crt contains no certificate',
      () => writeFileSync(files().certificate, 'nonsense'),
      /tls\.crt contains no certificate$/,
    ],
    ['tls.crt does not exist', () => rmSync(files().certificate), /ENOENT/],
  ])('stay in use while %s; the reason is logged without the contents', async (_, spoil, reason) => {
    write(pairs[0]!)
    await watch()
    spoil()
    await until(() => warnings.some((fields) => reason.test(String(fields.reason))))
    expect(JSON.stringify(warnings)).not.toMatch(/nonsense|BEGIN/)
    expect(used).toEqual([pairs[0]])
    write(pairs[2]!)
    await until(() => inUse() === pairs[2]!.certificate)
  })

  it('include the client CA, which is also reloaded', async () => {
    write(pairs[0]!)
    const clientCA = join(folder, 'ca.crt')
    writeFileSync(clientCA, authority.certificate)
    await watch({ ...files(), clientCA })
    expect(used).toEqual([{ ...pairs[0], clientCA: authority.certificate }])
    const other = await makeAuthority(systemClock, { commonName: 'other' })
    writeFileSync(clientCA, other.certificate)
    await until(() => used.at(-1)?.clientCA === other.certificate)
  })

  it('are rejected at the start if the key does not match or a file is missing; the error names the file', async () => {
    write({ ...pairs[0]!, key: pairs[1]!.key })
    await expect(watch()).rejects.toThrow(/the key in .*tls\.key does not belong to the certificate in .*tls\.crt/)
    await expect(watch(files('/missing'))).rejects.toThrow(/no such file.*\/missing\/tls\.crt/)
  })

  it('of a client are presented; after a change the new certificate is presented', async () => {
    write(pairs[0]!)
    const presented: CertifiedKey[] = []
    const present = (pair: CertifiedKey) => {
      presented.push(pair)
      changed?.()
    }
    watched = await presentFrom(files(), { present }, log)
    write(pairs[1]!)
    await until(() => presented.at(-1)?.certificate === pairs[1]!.certificate)
    expect(presented).toEqual([pairs[0], pairs[1]])
  })
})

it.skipIf(process.platform === 'win32')('a pipe, a device or a file that is too long is rejected', async () => {
  write(pairs[0]!)
  await watch()
  rmSync(files().key)
  spawnSync('mkfifo', [files().key])
  await until(() => warnings.some(({ reason }) => String(reason).endsWith('tls.key is not a regular file')))
  rmSync(files().key)
  writeFileSync(files().key, Buffer.alloc((4 << 20) + 1))
  await until(() => warnings.some(({ reason }) => String(reason).endsWith('tls.key is longer than 4194304 bytes')))
  rmSync(files().key)
  write(pairs[1]!)
  await until(() => inUse() === pairs[1]!.certificate)
  await expect(watch({ ...files(), certificate: '/dev/zero' })).rejects.toThrow('/dev/zero is not a regular file')
})

it('a certificate that is not valid now is used; a warning names the file and the dates', async () => {
  write(pairs[0]!)
  const later = new VirtualClock(systemClock.now() + hours(24 * 400))
  watched = await servingCertificateFrom(files(), (serving) => used.push(serving), log, later)
  expect(used).toHaveLength(1)
  expect(warnings).toEqual([
    { file: files().certificate, reason: expect.stringMatching(/^the certificate is valid from .* to .*, and now is /) },
  ])
})
