/** Validates manifests against a management cluster, with strict field validation. */
import {
  CustomResourceDefinition,
  type Kind,
  type KubeObject,
  seededRandom,
  silent,
  systemClock,
  unknownKind,
} from '@capstan/kube'
import { createManagementCluster, memoryStores } from '@capstan/lab'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'

export interface ManifestValidator {
  /**
   * Returns `Kind namespace/name` of each object that `kubectl apply -f FOLDER --validate=strict` would apply; `-` stands for the namespace
   * of a cluster-scoped object.
   * @throws StatusError for an object that the API server rejects
   */
  accept(folder: string): Promise<string[]>
  close(): Promise<void>
}

/** Creates a validator with a management cluster, which has the kinds of Cluster API and the kinds of cert-manager that manifests use. */
export async function manifestValidator(): Promise<ManifestValidator> {
  const endpoint = { host: '127.0.0.1', port: 1 }
  const management = await createManagementCluster({
    stores: memoryStores(),
    clock: systemClock,
    random: seededRandom(1),
    log: silent,
    endpoint,
  })
  for (const definition of certManagerDefinitions) await management.client.create(CustomResourceDefinition, definition)
  return {
    async accept(folder) {
      const accepted: string[] = []
      for (const file of readdirSync(folder).sort()) {
        for (const object of manifestsIn(join(folder, file))) {
          // Namespaces are created despite the dry run of the other objects, which need them.
          const dryRun = object.kind !== 'Namespace'
          const created = await management.client.create(kindOf(object), object as never, { dryRun, fieldValidation: 'Strict' })
          accepted.push(`${created.kind} ${created.metadata.namespace ?? '-'}/${created.metadata.name}`)
        }
      }
      return accepted
    },
    close: () => management.close(),
  }
}

export const manifestsIn = (file: string): KubeObject[] =>
  parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as KubeObject)

function kindOf({ apiVersion, kind }: KubeObject): Kind {
  const isClusterScoped = kind === 'Namespace' || kind === 'ExtensionConfig'
  return unknownKind({ apiVersion, kind, plural: `${kind.toLowerCase()}s`, scope: isClusterScoped ? 'Cluster' : 'Namespaced' })
}

const certManagerDefinitions = [
  {
    kind: 'Issuer',
    specProperties: { selfSigned: { type: 'object' }, ca: { type: 'object', properties: { secretName: { type: 'string' } } } },
  },
  {
    kind: 'Certificate',
    specProperties: {
      isCA: { type: 'boolean' },
      commonName: { type: 'string' },
      duration: { type: 'string' },
      privateKey: {
        type: 'object',
        properties: {
          algorithm: { type: 'string', enum: ['RSA', 'ECDSA', 'Ed25519'] },
          rotationPolicy: { type: 'string', enum: ['Never', 'Always'] },
        },
      },
      secretName: { type: 'string' },
      dnsNames: { type: 'array', items: { type: 'string' } },
      issuerRef: {
        type: 'object',
        required: ['name'],
        properties: { group: { type: 'string' }, kind: { type: 'string' }, name: { type: 'string' } },
      },
    },
  },
].map(({ kind, specProperties }) => {
  const plural = `${kind.toLowerCase()}s`
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties: specProperties } } } }
  return {
    metadata: { name: `${plural}.cert-manager.io` },
    spec: {
      group: 'cert-manager.io',
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      scope: 'Namespaced',
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  }
}) as never[]
