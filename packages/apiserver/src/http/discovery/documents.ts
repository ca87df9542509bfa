/**
 * Discovery and OpenAPI documents with their hashes, made on request and cached until the resources change. Clients cache them by hash, so
 * the hash depends only on the content, and is the same after a restart.
 */
import { readJSON, writeJSON } from '@capstan/kube'
import { createHash } from 'node:crypto'
import type { Resource, Resources } from '../../registry/resource.ts'
import type { GroupVersions } from './discovery.ts'
import { aggregatedDiscovery, groupsOf } from './discovery.ts'
import { openAPIDocument } from '../openapi/openapi.ts'
import { swaggerOf } from '../openapi/swagger.ts'
import { swaggerProtobuf } from '../openapi/swagger-protobuf.ts'

export interface Document {
  readonly bytes: Buffer
  readonly hash: string
}

export class Documents {
  readonly #resources: Resources
  #generation = -1
  #groups: readonly GroupVersions[] = []
  readonly #discovery = new Map<'core' | 'groups', Document>()
  readonly #swagger = new Map<'json' | 'protobuf', Document>()
  /** OpenAPI outlives changes of other groups: making it is dear, and CustomResourceDefinitions come in dozens. */
  readonly #openapi = new Map<string, { readonly resources: readonly Resource[]; readonly document: Document }>()

  constructor(resources: Resources) {
    this.#resources = resources
  }

  get groups(): readonly GroupVersions[] {
    if (this.#generation !== this.#resources.generation) {
      this.#generation = this.#resources.generation
      this.#groups = groupsOf(this.#resources.list())
      this.#discovery.clear()
      this.#swagger.clear()
    }
    return this.#groups
  }

  group(name: string): GroupVersions | undefined {
    return this.groups.find(({ group }) => group === name)
  }

  version(group: string, version: string): readonly Resource[] | undefined {
    return this.group(group)?.versions.find((served) => served.version === version)?.resources
  }

  aggregated(of: 'core' | 'groups'): Document {
    const groups = this.groups.filter(({ group }) => (of === 'core') === (group === ''))
    let document = this.#discovery.get(of)
    if (!document) this.#discovery.set(of, (document = documentOf(aggregatedDiscovery(groups))))
    return document
  }

  /** `path` is that of the group version without the first slash, such as `apis/cluster.x-k8s.io/v1beta2`. */
  openAPI(path: string): Document | undefined {
    const [root, ...rest] = path.split('/')
    const [group, version] = root === 'api' ? ['', rest[0]] : rest
    const resources = group === undefined || version === undefined ? undefined : this.version(group, version)
    if (!resources) return undefined
    const known = this.#openapi.get(path)
    if (known?.resources.length === resources.length && known.resources.every((r, i) => r.schema === resources[i]!.schema))
      return known.document
    const document = documentOf(openAPIDocument(resources, (names) => this.#resources.schemas(names)))
    this.#openapi.set(path, { resources, document })
    return document
  }

  /** OpenAPI v2 of everything, as JSON or in the protobuf that Go clients ask for. */
  swagger(form: 'json' | 'protobuf', version: string): Document {
    const { groups } = this
    let document = this.#swagger.get(form)
    if (!document) {
      const paths = groups.flatMap(({ group, versions }) => versions.map((one) => pathOf(group, one.version)))
      const swagger = swaggerOf(
        paths.map((path) => readJSON(this.openAPI(path)!.bytes.toString()) as { [member: string]: unknown }),
        version,
      )
      document = form === 'json' ? documentOf(swagger) : documentOfBytes(swaggerProtobuf(swagger))
      this.#swagger.set(form, document)
    }
    return document
  }

  openAPIIndex(): object {
    const paths: { [path: string]: object } = {}
    for (const { group, versions } of this.groups) {
      for (const { version } of versions) {
        const path = pathOf(group, version)
        paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${this.openAPI(path)?.hash}` }
      }
    }
    return { paths }
  }
}

const pathOf = (group: string, version: string): string => (group === '' ? `api/${version}` : `apis/${group}/${version}`)

const documentOf = (value: object): Document => documentOfBytes(Buffer.from(writeJSON(value)))

function documentOfBytes(bytes: Buffer): Document {
  return { bytes, hash: createHash('sha256').update(bytes).digest('hex').toUpperCase() }
}
