/** Certificates and token signing key of an API server that `capstan` runs, and the kubeconfig of its administrator. */
import { createPrivateKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeSigningKey } from '@capstan/kubernetes-kinds'
import type { Clock } from '@capstan/kube'
import { hours, messageOf } from '@capstan/kube'
import type { CertificateNames, CertifiedKey } from '@capstan/kube/node'
import {
  formatKubeconfig,
  issueCertificate,
  isUsable,
  kubeconfigFor,
  makeAuthority,
  makeFolder,
  writeGroup,
} from '@capstan/kube/node'

export interface Access {
  readonly authority: CertifiedKey
  /** Serving certificate. */
  readonly server: CertifiedKey
  /** Client certificate of the administrator, in the group `system:masters`. */
  readonly admin: CertifiedKey
}

/** Certificates that expire within this time are renewed at the start. */
const Margin = hours(24 * 30)

/**
 * Loads the certificates in `folder`. Creates missing certificates, and replaces unusable and expiring ones. Without a folder, creates all
 * certificates and stores none.
 */
export async function openAccess(
  clock: Clock,
  folder: string | undefined,
  addresses: { ip: readonly string[]; dns: readonly string[] },
): Promise<Access> {
  const openCertificate = (name: string, make: () => Promise<CertifiedKey>, issuer?: CertifiedKey, names?: CertificateNames) =>
    folder === undefined ? make() : loadOrCreate(clock, `${folder}/${name}`, make, issuer?.certificate, names)
  const serverNames = { dnsNames: addresses.dns, ipAddresses: addresses.ip }
  const authority = await openCertificate('ca', () => makeAuthority(clock, { commonName: 'capstan' }))
  const [server, admin] = await Promise.all([
    openCertificate(
      'apiserver',
      () =>
        issueCertificate(authority, clock, {
          commonName: 'kube-apiserver',
          usages: ['server'],
          ...serverNames,
        }),
      authority,
      serverNames,
    ),
    openCertificate(
      'admin',
      () =>
        issueCertificate(authority, clock, {
          commonName: 'kubernetes-admin',
          organizations: ['system:masters'],
          usages: ['client'],
        }),
      authority,
    ),
  ])
  return { authority, server, admin }
}

/**
 * Loads the signing key for service account tokens from `folder`, so that tokens stay valid after a restart. Creates a missing key, and
 * replaces a file that contains no private key. Without a folder, creates a key and does not store it.
 */
export async function openSigningKey(folder: string | undefined): Promise<string> {
  if (folder === undefined) return makeSigningKey()
  const path = `${folder}/sa.key`
  try {
    const key = await readFile(path, 'utf8')
    if (isPrivateKey(key)) return key
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'ENOENT') throw err
  }
  const created = makeSigningKey()
  await makeDataFolder(folder)
  await writeGroup({ [path]: created })
  return created
}

/** Creates a folder that only its owner can read, if it does not exist. @throws Error naming the folder */
async function makeDataFolder(folder: string): Promise<void> {
  try {
    await makeFolder(folder, 0o700)
  } catch (err) {
    throw new Error(`Cannot open data folder ${folder}: ${messageOf(err)}`, { cause: err })
  }
}

function isPrivateKey(text: string): boolean {
  try {
    createPrivateKey(text)
    return true
  } catch {
    return false
  }
}

/**
 * Reads a certificate and its key from `path`.crt and `path`.key. Replaces both if a file is missing or unusable, if they do
 * not match, if the certificate is not valid yet or expires within `Margin`, if it lacks one of `names`, or if `authority` did
 * not sign it (default: the certificate itself).
 */
async function loadOrCreate(
  clock: Clock,
  path: string,
  make: () => Promise<CertifiedKey>,
  authority: string | undefined,
  names: CertificateNames | undefined,
): Promise<CertifiedKey> {
  const existing = await readPair(path)
  if (existing && isUsable(existing, clock.now(), Margin, authority, names)) return existing
  const created = await make()
  await makeDataFolder(dirname(path))
  await writeGroup({ [`${path}.key`]: created.key, [`${path}.crt`]: created.certificate })
  return created
}

async function readPair(path: string): Promise<CertifiedKey | undefined> {
  try {
    return { certificate: await readFile(`${path}.crt`, 'utf8'), key: await readFile(`${path}.key`, 'utf8') }
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw err
  }
}

/**
 * Writes the administrator's kubeconfig, readable only by the owner of the file, because it contains a key.
 *
 * @param ca certificates that clients trust, in PEM, if another authority than that of `access` issued the serving certificate
 * @throws Error naming the file
 */
export async function writeKubeconfig(
  path: string,
  url: string,
  { authority, admin }: Access,
  ca = authority.certificate,
): Promise<void> {
  const config = kubeconfigFor('capstan', {
    server: url,
    ca,
    certificate: admin.certificate,
    key: admin.key,
  })
  try {
    await makeFolder(dirname(path))
    await writeGroup({ [path]: formatKubeconfig(config) })
  } catch (err) {
    throw new Error(`Cannot write kubeconfig ${path}: ${messageOf(err)}`, { cause: err })
  }
}
