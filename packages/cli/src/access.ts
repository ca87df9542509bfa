/** Certificates of an API server that `capstan` runs, and the kubeconfig that lets its owner in. */
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeSigningKey } from '@capstan/apiserver'
import type { Clock } from '@capstan/kube'
import { hours, messageOf } from '@capstan/kube'
import type { CertifiedKey } from '@capstan/kube/node'
import { certificateExpiry, formatKubeconfig, issueCertificate, kubeconfigFor, makeAuthority } from '@capstan/kube/node'

export interface Access {
  readonly authority: CertifiedKey
  /** What the server shows. */
  readonly server: CertifiedKey
  /** What its owner shows: a client certificate of the group `system:masters`. */
  readonly admin: CertifiedKey
}

/** Certificates closer to their end than this are made anew at the start. */
const Margin = hours(24 * 30)

/** The certificates kept in `folder`, made where they are missing or about to expire. Without a folder they live as long as the process. */
export async function openAccess(
  clock: Clock,
  folder: string | undefined,
  addresses: { ip: readonly string[]; dns: readonly string[] },
): Promise<Access> {
  const keep = (name: string, make: () => Promise<CertifiedKey>) =>
    folder === undefined ? make() : kept(clock, `${folder}/${name}`, make)
  const authority = await keep('ca', () => makeAuthority(clock, { commonName: 'capstan' }))
  const [server, admin] = await Promise.all([
    keep('apiserver', () =>
      issueCertificate(authority, clock, {
        commonName: 'kube-apiserver',
        usages: ['server'],
        ipAddresses: addresses.ip,
        dnsNames: addresses.dns,
      }),
    ),
    keep('admin', () =>
      issueCertificate(authority, clock, {
        commonName: 'kubernetes-admin',
        organizations: ['system:masters'],
        usages: ['client'],
      }),
    ),
  ])
  return { authority, server, admin }
}

/** The key that signs tokens of service accounts, kept in `folder`: whoever has a token keeps it over a restart. */
export async function openSigningKey(folder: string | undefined): Promise<string> {
  if (folder === undefined) return makeSigningKey()
  const path = `${folder}/sa.key`
  try {
    return await readFile(path, 'utf8')
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'ENOENT') throw err
  }
  const made = makeSigningKey()
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writePrivate(path, made)
  return made
}

async function kept(clock: Clock, path: string, make: () => Promise<CertifiedKey>): Promise<CertifiedKey> {
  const found = await read(path)
  if (found && certificateExpiry(found.certificate) - clock.now() > Margin) return found
  const made = await make()
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writePrivate(`${path}.key`, made.key)
  await writePrivate(`${path}.crt`, made.certificate)
  return made
}

async function read(path: string): Promise<CertifiedKey | undefined> {
  try {
    return { certificate: await readFile(`${path}.crt`, 'utf8'), key: await readFile(`${path}.key`, 'utf8') }
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw err
  }
}

/** Writes the kubeconfig of the server's owner. It holds a key: nobody else may read it. @throws Error naming the file */
export async function writeKubeconfig(path: string, url: string, { authority, admin }: Access): Promise<void> {
  const config = kubeconfigFor('capstan', {
    server: url,
    ca: authority.certificate,
    certificate: admin.certificate,
    key: admin.key,
  })
  try {
    await mkdir(dirname(path), { recursive: true })
    await writePrivate(path, formatKubeconfig(config))
  } catch (err) {
    throw new Error(`Cannot write kubeconfig ${path}: ${messageOf(err)}`, { cause: err })
  }
}

/** Whole or not at all: a reader never sees half of it. */
async function writePrivate(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`
  await writeFile(temporary, text, { mode: 0o600 })
  await chmod(temporary, 0o600)
  await rename(temporary, path)
}
