/** Schemas of patches in responses. A patch is a JSON document that is encoded as base64. */
import { s } from '@capstan/kube'

/** JSONPatch is RFC 6902, an array of operations; JSONMergePatch is RFC 7386, an object. */
export const patchType = s.enum('JSONPatch', 'JSONMergePatch').doc('JSONPatch (RFC 6902) or JSONMergePatch (RFC 7386).')

/** A `[]byte` of Go: standard base64 with padding. */
export const patchDocument = s.string({ format: 'byte' }).doc('The patch document, in standard base64 with padding.')

/** A patch of one object. A patch without members does not change the object. */
export const wirePatch = s.object({ patchType: patchType.optional(), patch: patchDocument.optional() })
