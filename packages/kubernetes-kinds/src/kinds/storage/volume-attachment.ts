import { type FieldError, forbidden, invalid, required, subdomainProblems, tooLong } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { problems } from '../checks.ts'
import { same } from '../same.ts'
import { ageColumn, at, column, nameColumn, text } from '../columns.ts'
import type { VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec, VolumeError } from '../schemas/types.ts'
import { csiDriverNameErrors } from './csi-node.ts'

/** Limit of the JSON text of `status.attachmentMetadata`, in UTF-16 units. Upstream counts the bytes of keys and values. */
const MaxAttachmentMetadata = 256 * 1024
/** Limit of the message of an error, in UTF-16 units. Upstream counts bytes. */
const MaxMessage = 1024

/** Upstream: pkg/apis/storage and pkg/registry/storage/volumeattachment, v1.36. */
export const volumeattachments: BuiltinKind<VolumeAttachment> = {
  returnsDeleted: true,
  columns: [
    nameColumn,
    column('Attacher', (o) => text(o, 'spec', 'attacher'), { format: 'name' }),
    column('PV', (o) => text(o, 'spec', 'source', 'persistentVolumeName')),
    column('Node', (o) => text(o, 'spec', 'nodeName')),
    column('Attached', (o) => at(o, 'status', 'attached') === true, { type: 'boolean' }),
    ageColumn,
  ],
  validate({ spec, status }, old) {
    const { persistentVolumeName: volume } = spec.source
    const { attachmentMetadata, attachError, detachError } = status ?? {}
    return [
      ...csiDriverNameErrors('spec.attacher', spec.attacher),
      ...sourceErrors(spec.source),
      ...problems('spec.nodeName', spec.nodeName, subdomainProblems(spec.nodeName)),
      ...(JSON.stringify(attachmentMetadata ?? {}).length > MaxAttachmentMetadata
        ? [tooLong('status.attachmentMetadata', MaxAttachmentMetadata)]
        : []),
      ...messageErrors('status.attachError', attachError),
      ...messageErrors('status.detachError', detachError),
      ...(volume === undefined ? [] : problems('spec.source.persistentVolumeName', volume, subdomainProblems(volume))),
      ...(old && !same(spec, old.spec) ? [invalid('spec', asInGo(spec), 'field is immutable')] : []),
    ]
  },
}

function sourceErrors({ inlineVolumeSpec: inline, persistentVolumeName: volume }: VolumeAttachmentSource): FieldError[] {
  const text = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'
  if (inline === undefined && volume === undefined) return [required('spec.source', text)]
  if (inline !== undefined && volume !== undefined) return [forbidden('spec.source', text)]
  return volume === '' ? [required('spec.source.persistentVolumeName', 'must specify non empty persistentVolumeName')] : []
}

/** As upstream, the error for a message that is too long names the limit of `status.attachmentMetadata`. */
const messageErrors = (path: string, error: VolumeError | undefined): FieldError[] =>
  (error?.message ?? '').length > MaxMessage ? [tooLong(`${path}.message`, MaxAttachmentMetadata)] : []

/**
 * Returns a spec as upstream's error prints it: with the field names of the Go structs. Unlike upstream, the fields of `inlineVolumeSpec` keep
 * their JSON names.
 */
const asInGo = ({ attacher, source, nodeName }: VolumeAttachmentSpec) => ({
  Attacher: attacher,
  Source: { PersistentVolumeName: source.persistentVolumeName ?? null, InlineVolumeSpec: source.inlineVolumeSpec ?? null },
  NodeName: nodeName,
})
