/**
 * Requires permission on the signer to approve or sign a CertificateSigningRequest, and rejects requests for the group system:masters to the
 * signer kubernetes.io/kube-apiserver-client. Upstream: plugin/pkg/admission/certificates.
 */
import { equal, messageOf, type UnknownObject } from '@capstan/kube'
import { decodedPem, parseSigningRequest } from '../kinds/certificates/request.ts'
import type { CertificateSigningRequest } from '../kinds/schemas/types.ts'
import { type ResourceInfo, superusers, forbidden, type Plugin, type PluginWrite } from '@capstan/apiserver/kinds'

const appliesTo = ({ storage }: ResourceInfo) => storage === 'certificatesigningrequests.certificates.k8s.io'
const requestOf = (object: UnknownObject | undefined) => object as unknown as CertificateSigningRequest

export const certificateApproval: Plugin = {
  name: 'CertificateApproval',
  appliesTo,
  validate(write) {
    if (write.operation !== 'UPDATE' || write.subresource !== 'approval') return
    // As upstream, reads the stored object. The signer is immutable, so the new object has the same signer.
    const { signerName } = requestOf(write.old).spec
    if (!isAllowedForSigner(write, 'approve', signerName)) {
      throw forbidden(write, `user not permitted to approve requests with signerName ${JSON.stringify(signerName)}`)
    }
  },
}

export const certificateSigning: Plugin = {
  name: 'CertificateSigning',
  appliesTo,
  validate(write) {
    if (write.operation !== 'UPDATE' || write.subresource !== 'status') return
    const [{ status }, old] = [requestOf(write.object), requestOf(write.old)]
    if (status.certificate === old.status.certificate && equal(status.conditions, old.status.conditions)) return
    const { signerName } = old.spec
    if (!isAllowedForSigner(write, 'sign', signerName)) {
      throw forbidden(write, `user not permitted to sign requests with signerName ${JSON.stringify(signerName)}`)
    }
  },
}

const clientSigner = 'kubernetes.io/kube-apiserver-client'

export const certificateSubjectRestriction: Plugin = {
  name: 'CertificateSubjectRestriction',
  appliesTo,
  validate(write) {
    const { spec } = requestOf(write.object)
    if (write.operation !== 'CREATE' || write.subresource !== undefined || spec.signerName !== clientSigner) return
    if (organizationsOf(write, spec.request as unknown as string).includes(superusers)) {
      throw forbidden(write, `use of ${clientSigner} signer with ${superusers} group is not allowed`)
    }
  },
}

function organizationsOf(write: PluginWrite, request: string): readonly string[] {
  try {
    return parseSigningRequest(decodedPem(request)).organizations
  } catch (err) {
    throw forbidden(write, `failed to parse CSR: ${messageOf(err)}`)
  }
}

/** Reports whether the user has a permission for this signer, or for all signers of its domain. */
function isAllowedForSigner({ authorizer, caller: user }: PluginWrite, verb: string, signer: string): boolean {
  const [domain = ''] = signer.split('/')
  const isAllowed = (name: string) =>
    authorizer.decide({ kind: 'resource', user, verb, group: 'certificates.k8s.io', resource: 'signers', name }).allowed
  return isAllowed(signer) || isAllowed(`${domain}/*`)
}
