/** Creates the objects of manifests. */
import { readFileSync } from 'node:fs'
import { coreKinds } from '@capstan/api'
import type { Client, DeclaredKind, Input, KubeObject } from '@capstan/kube'
import { isReason } from '@capstan/kube'
import { demoFolder } from '@capstan/lab'
import { localKinds } from '@capstan/local'
import { parseAllDocuments } from 'yaml'

/** The kinds that manifests may contain, by name. */
export const manifestKinds: ReadonlyMap<string, DeclaredKind> = new Map(
  [...coreKinds, ...localKinds].map((kind) => [kind.kind, kind]),
)

/** Returns the objects of a manifest file. */
export const readManifests = (path: URL) =>
  parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS() as Input<KubeObject> & { kind: string })

/** Creates the objects of a manifest file that do not exist. */
export async function createFrom(client: Client, path: URL): Promise<void> {
  for (const object of readManifests(path)) {
    const kind = manifestKinds.get(object.kind)
    if (!kind) throw new Error(`Cannot create ${object.kind} from ${path.pathname}: the kind is not known`)
    try {
      await client.create(kind, object)
    } catch (err) {
      if (!isReason(err, 'AlreadyExists')) throw err
    }
  }
}

/** Creates the class and the cluster of `npm start`. */
export async function applyDemo(client: Client): Promise<void> {
  await createFrom(client, new URL('class.yaml', demoFolder))
  await createFrom(client, new URL('cluster.yaml', demoFolder))
}
