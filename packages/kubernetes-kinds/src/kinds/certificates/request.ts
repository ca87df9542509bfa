/** Parses the parts of certificate signing requests (PKCS #10) that the server uses, and validates certificates in PEM. */
import { createPublicKey, verify, X509Certificate } from 'node:crypto'
import { messageOf } from '@capstan/kube'

/** The parts of a certificate signing request that the server uses. */
export interface SigningRequest {
  /** Organizations (O) of the subject: the groups of the user. */
  readonly organizations: readonly string[]
}

/** Decodes a field with base64-encoded PEM. */
export const decodedPem = (base64: string): string => Buffer.from(base64, 'base64').toString('latin1')

/** Parses a request in PEM and verifies its signature. @throws Error with the reason */
export function parseSigningRequest(pem: string): SigningRequest {
  const [block] = blocksOf(pem)
  if (block?.type !== 'CERTIFICATE REQUEST') throw new Error('PEM block type must be CERTIFICATE REQUEST')
  try {
    return parseRequest(block.bytes)
  } catch (err) {
    if (/^(asn1|x509|crypto\/\w+): /.test(messageOf(err))) throw err
    // Other errors are caused by malformed bytes, or by a key that Node cannot read.
    throw new Error('x509: malformed certificate request', { cause: err })
  }
}

function parseRequest(bytes: Buffer): SigningRequest {
  const [signed, algorithm, signature] = membersOf(bytes)
  const [, subject, publicKey] = membersOf(signed!.encoded)
  const digest = digests[hexOf(membersOf(algorithm!.encoded)[0]!.content)]
  if (digest === undefined) throw new Error('x509: cannot verify signature: algorithm unimplemented')
  const key = createPublicKey({ key: publicKey!.encoded, format: 'der', type: 'spki' })
  // Skips the first byte of the bit string, which is the number of its unused bits: zero.
  const isSigned = verify(digest === '' ? undefined : digest, signed!.encoded, key, signature!.content.subarray(1))
  if (!isSigned) throw new Error(failures[key.asymmetricKeyType ?? ''] ?? 'x509: verification failure')
  return { organizations: valuesOf(subject!.encoded, organization) }
}

/** Validates PEM with one or more certificates. Returns the error text, or `undefined` when all are valid. */
export function certificateProblem(pem: string): string | undefined {
  const blocks = blocksOf(pem)
  if (blocks.length === 0) return 'must contain at least one CERTIFICATE PEM block'
  for (const { type, bytes, hasHeaders } of blocks) {
    if (type !== 'CERTIFICATE') return `only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(type)}`
    if (hasHeaders) return 'no PEM block headers are permitted'
    try {
      new X509Certificate(bytes)
    } catch {
      return 'x509: malformed certificate'
    }
  }
  return undefined
}

interface Block {
  readonly type: string
  readonly bytes: Buffer
  readonly hasHeaders: boolean
}

function blocksOf(pem: string): Block[] {
  return [...pem.matchAll(/-----BEGIN ([^-\n]+)-----\r?\n([^-]*)-----END \1-----/g)].map(([, type = '', body = '']) => ({
    type,
    bytes: Buffer.from(body.replace(/^[^\n]*:[^\n]*\n/gm, ''), 'base64'),
    hasHeaders: /^[^\n]*:/m.test(body),
  }))
}

// ASN.1, in DER

interface Element {
  readonly tag: number
  readonly content: Buffer
  readonly encoded: Buffer
}

/** Returns the elements of a sequence or set. */
function membersOf(sequence: Buffer): Element[] {
  const { content } = elementAt(sequence, 0)
  const members: Element[] = []
  for (let offset = 0; offset < content.length; offset += members.at(-1)!.encoded.length) members.push(elementAt(content, offset))
  return members
}

function elementAt(bytes: Buffer, offset: number): Element {
  const malformed = new Error('asn1: structure error: data truncated')
  let length = bytes[offset + 1] ?? 0
  let start = offset + 2
  if (length > 0x7f) {
    const size = length - 0x80
    if (size > 4 || start + size > bytes.length) throw malformed
    length = bytes.readUIntBE(start, size)
    start += size
  }
  if (start + length > bytes.length || offset >= bytes.length) throw malformed
  return { tag: bytes[offset]!, content: bytes.subarray(start, start + length), encoded: bytes.subarray(offset, start + length) }
}

/** Returns the values of an attribute of a distinguished name. */
const valuesOf = (name: Buffer, attribute: string): string[] =>
  membersOf(name)
    .flatMap(({ encoded }) => membersOf(encoded))
    .map(({ encoded }) => membersOf(encoded))
    .filter(([type]) => hexOf(type!.content) === attribute)
    .map(([, value]) => value!.content.toString('utf8'))

const hexOf = (identifier: Buffer): string => identifier.toString('hex')

/** Object identifier of the attribute organizationName, in hexadecimal. */
const organization = '55040a'

/** Digests by object identifier of the signature algorithm, in hexadecimal; empty if the key determines the digest. */
const digests: { readonly [algorithm: string]: string } = {
  '2a864886f70d01010b': 'sha256',
  '2a864886f70d01010c': 'sha384',
  '2a864886f70d01010d': 'sha512',
  '2a8648ce3d040302': 'sha256',
  '2a8648ce3d040303': 'sha384',
  '2a8648ce3d040304': 'sha512',
  '2b6570': '',
}

/** Error texts of invalid signatures, by type of the key. */
const failures: { readonly [keyType: string]: string } = {
  rsa: 'crypto/rsa: verification error',
  ec: 'x509: ECDSA verification failure',
  ed25519: 'x509: Ed25519 verification failure',
}
