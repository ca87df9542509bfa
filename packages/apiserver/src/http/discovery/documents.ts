/**
 * Discovery and OpenAPI documents with their hashes, created on request. OpenAPI v3 documents are cached until the resources of their group
 * version change, the others until any resource changes. Clients cache documents by hash, so the hash depends only on the content, and is the
 * same after a restart. OpenAPI documents can be large, so they are created in pieces, between which other requests run, and once for all
 * concurrent requests.
 */
import { type Clock, inPieces, type Work, writeJSON } from '@capstan/kube'
import { createHash } from 'node:crypto'
import type { Resource, Resources } from '../../registry/resource.ts'
import type { GroupVersions } from './discovery.ts'
import { aggregatedDiscovery, groupsOf } from './discovery.ts'
import { jsonMember, joinWithCommas } from '../openapi/json-parts.ts'
import { openAPIHead, type OpenAPIPart, openAPIParts } from '../openapi/openapi.ts'
import { swaggerHead, swaggerJSON, swaggerOf } from '../openapi/swagger.ts'
import { swaggerProtobuf } from '../openapi/swagger-protobuf.ts'

export interface Document {
  readonly bytes: Buffer
  /** SHA-256 of `bytes`, in upper-case hexadecimal. */
  readonly hash: string
}

const swaggerEncodings = { json: swaggerJSON, protobuf: swaggerProtobuf }
type SwaggerEncoding = keyof typeof swaggerEncodings

/** OpenAPI v3 of a group version, with the resources that it describes. */
interface CachedOpenAPI {
  readonly resources: readonly Resource[]
  readonly document: Promise<Document>
}

export class Documents {
  readonly #resources: Resources
  readonly #clock: Clock
  #generation = -1
  #groups: readonly GroupVersions[] = []
  /** Resources of each group version, by the path of its OpenAPI document. */
  #served: ReadonlyMap<string, readonly Resource[]> = new Map()
  readonly #discovery = new Map<'core' | 'groups', Document>()
  readonly #swagger = new Map<SwaggerEncoding, Promise<Document>>()
  /**
   * OpenAPI v3 documents by path. A document stays cached when other group versions change, because creating documents is slow and CRDs are
   * often installed by the dozen.
   */
  readonly #openapi = new Map<string, CachedOpenAPI>()

  constructor(resources: Resources, clock: Clock) {
    this.#resources = resources
    this.#clock = clock
  }

  get groups(): readonly GroupVersions[] {
    this.#refresh()
    return this.#groups
  }

  group(name: string): GroupVersions | undefined {
    return this.groups.find(({ group }) => group === name)
  }

  /** Returns the resources of a group version; `undefined` if it is not served. */
  resourcesOf(group: string, version: string): readonly Resource[] | undefined {
    this.#refresh()
    return this.#served.get(pathOf(group, version))
  }

  /** Returns the aggregated discovery of the core group (`/api`), or of all other groups (`/apis`). */
  aggregated(scope: 'core' | 'groups'): Document {
    const groups = this.groups.filter(({ group }) => (scope === 'core') === (group === ''))
    let document = this.#discovery.get(scope)
    if (!document) this.#discovery.set(scope, (document = documentOf(aggregatedDiscovery(groups))))
    return document
  }

  /**
   * Returns OpenAPI v3 of a group version; `undefined` if it is not served. `path` is the path of the group version without the first slash,
   * such as `apis/cluster.x-k8s.io/v1beta2`.
   */
  async openAPI(path: string): Promise<Document | undefined> {
    this.#refresh()
    const resources = this.#served.get(path)
    return resources && this.#openAPIOf(path, resources)
  }

  /** Returns OpenAPI v2 of all groups, as JSON or as the protobuf that Go clients request. `version` is that of Kubernetes: `1.36`. */
  swagger(encoding: SwaggerEncoding, version: string): Promise<Document> {
    this.#refresh()
    let document = this.#swagger.get(encoding)
    if (!document) {
      document = this.#inPieces(this.#makeSwagger([...this.#served.values()], encoding, version))
      this.#swagger.set(encoding, document)
    }
    return document
  }

  /** Returns the document of `/openapi/v3`: the paths of all OpenAPI v3 documents, with their hashes. */
  async openAPIIndex(): Promise<object> {
    this.#refresh()
    const paths: { [path: string]: object } = {}
    for (const [path, resources] of this.#served) {
      const { hash } = await this.#openAPIOf(path, resources)
      paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }
    }
    return { paths }
  }

  #refresh(): void {
    if (this.#generation === this.#resources.generation) return
    this.#generation = this.#resources.generation
    this.#groups = groupsOf(this.#resources.list())
    this.#served = new Map(
      this.#groups.flatMap(({ group, versions }) =>
        versions.map(({ version, resources }) => [pathOf(group, version), resources] as const),
      ),
    )
    this.#discovery.clear()
    this.#swagger.clear()
    for (const path of this.#openapi.keys()) if (!this.#served.has(path)) this.#openapi.delete(path)
  }

  #openAPIOf(path: string, resources: readonly Resource[]): Promise<Document> {
    const cached = this.#openapi.get(path)
    if (cached?.resources.length === resources.length && cached.resources.every((r, i) => haveSameOpenAPI(r, resources[i]!)))
      return cached.document
    const document = this.#inPieces(this.#makeOpenAPI(resources))
    // While `openAPIIndex` waited for an earlier document, the resources may have changed. Then this document is not cached.
    if (this.#served.get(path) === resources) this.#openapi.set(path, { resources, document })
    return document
  }

  async #inPieces<T>(work: Work<T>): Promise<T> {
    return inPieces(this.#clock, work)
  }

  *#makeOpenAPI(resources: readonly Resource[]): Generator<undefined, Document> {
    const paths = new Map<string, Buffer>()
    const schemas = new Map<string, Buffer>()
    for (const part of openAPIParts(resources, (names) => this.#resources.schemas(names))) {
      for (const [path, item] of Object.entries(part.paths)) paths.set(path, jsonMember(path, item))
      for (const [name, schema] of Object.entries(part.schemas)) {
        schemas.set(name, jsonMember(name, schema))
        yield
      }
    }
    return yield* documentInParts([
      Buffer.from(`${JSON.stringify(openAPIHead).slice(0, -1)},"paths":{`),
      ...joinWithCommas(paths.values()),
      Buffer.from('},"components":{"schemas":{'),
      ...joinWithCommas(schemas.values()),
      Buffer.from('}}}'),
    ])
  }

  *#partsOf(served: readonly (readonly Resource[])[]): Generator<OpenAPIPart> {
    for (const resources of served) yield* openAPIParts(resources, (names) => this.#resources.schemas(names))
  }

  *#makeSwagger(
    served: readonly (readonly Resource[])[],
    encoding: SwaggerEncoding,
    version: string,
  ): Generator<undefined, Document> {
    return yield* documentInParts(yield* swaggerOf(this.#partsOf(served), swaggerHead(version), swaggerEncodings[encoding]))
  }
}

/**
 * Reports whether two resources have the same OpenAPI v3. Compares only the fields that the document contains and that a
 * CustomResourceDefinition can change.
 */
const haveSameOpenAPI = (a: Resource, b: Resource): boolean =>
  describedFields.every((field) => a[field] === b[field]) && (a.scale === undefined) === (b.scale === undefined)

const describedFields = ['schema', 'plural', 'kind', 'listKind', 'namespaced', 'statusSubresource'] as const

const pathOf = (group: string, version: string): string => (group === '' ? `api/${version}` : `apis/${group}/${version}`)

function documentOf(value: object): Document {
  const bytes = Buffer.from(writeJSON(value))
  return { bytes, hash: createHash('sha256').update(bytes).digest('hex').toUpperCase() }
}

function* documentInParts(parts: Iterable<Buffer>): Generator<undefined, Document> {
  const hash = createHash('sha256')
  const buffers: Buffer[] = []
  for (const part of parts) {
    hash.update(part)
    buffers.push(part)
    yield
  }
  return { bytes: Buffer.concat(buffers), hash: hash.digest('hex').toUpperCase() }
}
