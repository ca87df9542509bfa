/** Responds to ConversionReviews with the conversions that kinds declare. Upstream: controller-runtime pkg/webhook/conversion, v0.24. */
import type { DeclaredKind, GroupKind, KubeObject } from '@capstan/kube'
import { apiVersionOf, messageOf } from '@capstan/kube'

export interface ConversionReview {
  readonly request: {
    readonly uid: string
    readonly desiredAPIVersion: string
    readonly objects?: readonly KubeObject[] | null
  }
}

/** Returns the apiVersion to use in references to objects of a kind. @throws Error when no version is found */
export type ApiVersionLookup = (kind: GroupKind) => Promise<string>

/** Returns the ConversionReview with the converted objects, or with the error of the first object that cannot be converted. */
export async function respondToConversion(
  kinds: readonly DeclaredKind[],
  { request }: ConversionReview,
  apiVersions: ApiVersionLookup,
): Promise<object> {
  const { uid, desiredAPIVersion, objects } = request
  const respond = (response: object) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    response: { uid, ...response },
  })
  const lookup = cachedLookup(apiVersions)
  try {
    const convertedObjects: KubeObject[] = []
    for (const object of objects ?? []) convertedObjects.push(await convertObject(kinds, object, desiredAPIVersion, lookup))
    return respond({ convertedObjects, result: { status: 'Success' } })
  } catch (err) {
    return respond({ convertedObjects: [], result: { status: 'Failure', message: messageOf(err) } })
  }
}

/** Caches lookups, because many objects of a review refer to the same few kinds. */
function cachedLookup(lookup: ApiVersionLookup): ApiVersionLookup {
  const versionByKind = new Map<string, Promise<string>>()
  return (kind) => {
    const name = `${kind.kind}.${kind.group}`
    const version = versionByKind.get(name) ?? lookup(kind)
    versionByKind.set(name, version)
    return version
  }
}

/** Converts an object to the storage version, which is the version of its declared kind, and then to `apiVersion`. */
async function convertObject(
  kinds: readonly DeclaredKind[],
  object: KubeObject,
  apiVersion: string,
  lookup: ApiVersionLookup,
): Promise<KubeObject> {
  if (object.apiVersion === apiVersion) return object
  const declaredKind = kinds.find(
    (kind) =>
      kind.kind === object.kind &&
      [kind, ...kind.versions.map((version) => version.kind)].some((version) => apiVersionOf(version) === object.apiVersion),
  )
  const sourceVersion = declaredKind?.versions.find(({ kind }) => apiVersionOf(kind) === object.apiVersion)
  const targetVersion = declaredKind?.versions.find(({ kind }) => apiVersionOf(kind) === apiVersion)
  if (!declaredKind || (!targetVersion && apiVersionOf(declaredKind) !== apiVersion)) {
    throw new Error(`${object.kind} of ${object.apiVersion} cannot be converted to ${apiVersion}`)
  }
  const withIdentity = (body: object, version: string, { metadata, kind }: KubeObject) => ({
    metadata,
    ...body,
    apiVersion: version,
    kind,
  })
  const stored = sourceVersion ? withIdentity(sourceVersion.toStored(object), apiVersionOf(declaredKind), object) : object
  if (!targetVersion) return stored
  const versions = new Map<string, string>()
  for (const referenced of targetVersion.references?.(stored) ?? []) {
    versions.set(`${referenced.kind}.${referenced.group}`, await referenceVersion(lookup, referenced))
  }
  const context = {
    apiVersionOf({ group, kind }: GroupKind): string {
      const version = versions.get(`${kind}.${group}`)
      if (version === undefined) throw new Error(`references() of ${object.kind} ${apiVersion} does not return ${kind}.${group}`)
      return version
    },
  }
  return withIdentity(targetVersion.fromStored(stored, context), apiVersion, stored)
}

/** Looks up a version, with the error text of upstream's convertToObjectReference. */
async function referenceVersion(lookup: ApiVersionLookup, kind: GroupKind): Promise<string> {
  try {
    return await lookup(kind)
  } catch (err) {
    throw new Error(`failed to convert object: ${messageOf(err)}`, { cause: err })
  }
}
