/** Reads a provider's manifests: a components file, or a source folder with the labels and patches of its kustomizations. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { type Manifest, isCrd, metadataOf, record } from '@capstan/conformance'
import { merged } from '@capstan/kube'
import { LineCounter, parseAllDocuments } from 'yaml'
import { UsageError } from '../io.ts'

/** Limit of the total size of manifests, and of Markdown files, in bytes. Components files of providers have at most a few megabytes. */
export const MaxBytes = 32 * 1024 * 1024
const MaxFiles = 5_000

const skippedFolders = new Set(['node_modules', 'vendor', '.git', 'testdata'])
const kustomizationNames = new Set(['kustomization.yaml', 'kustomization.yml', 'Kustomization'])

export interface ReadManifests {
  readonly manifests: readonly Manifest[]
  /** Skipped files that are not YAML, such as templates of Helm charts. */
  readonly unread: readonly string[]
}

/**
 * Reads a file, or every YAML file and every JSON file with Kubernetes objects below a folder. Skips the folders node_modules, vendor,
 * .git and testdata. Applies the kustomizations of a folder. The result contains no kustomizations, none of their patches, and each
 * CustomResourceDefinition once.
 *
 * @throws UsageError when the path does not exist, the files exceed a limit, or a file is not YAML. In a folder, a file that is not YAML is
 * an error only if it contains a CustomResourceDefinition.
 */
export function readManifests(path: string): ReadManifests {
  const isFolder = stat(path).isDirectory()
  const files = isFolder ? filesBelow(path, 'manifest', isManifest) : [path]
  const unread: string[] = []
  const byFile = new Map<string, Manifest[]>()
  let bytes = 0
  for (const file of files) {
    bytes += statSync(file).size
    if (bytes > MaxBytes) throw new UsageError(`${path}: manifests have more than ${MaxBytes / 1024 / 1024} MiB`)
    const displayPath = isFolder ? join(path, relative(path, file)) : path
    const text = readFileSync(file, 'utf8')
    // Skips JSON files without objects, such as package.json.
    if (isFolder && file.endsWith('.json') && !/"kind"\s*:/.test(text)) continue
    const manifests = parseManifests(text, displayPath)
    if (manifests !== undefined) byFile.set(resolve(file), manifests)
    else if (isFolder && !/^kind:\s*CustomResourceDefinition/m.test(text)) unread.push(displayPath)
    else throw new UsageError(`${displayPath}: expected YAML`)
  }
  if (isFolder) for (const file of byFile.keys()) if (isKustomization(file)) applyKustomization(file, byFile)
  const patches = patchesOf(byFile)
  const objects = [...byFile].flatMap(([file, manifests]) => (isKustomization(file) || patches.has(file) ? [] : manifests))
  return { manifests: withoutDuplicates(objects), unread }
}

function stat(path: string): ReturnType<typeof statSync> & object {
  try {
    return statSync(path)
  } catch {
    throw new UsageError(`${path}: no such file or folder`)
  }
}

/** Reads the Markdown files below a folder; `undefined` when there are none. @throws UsageError when the files exceed a limit */
export function readDocumentation(folder: string): string | undefined {
  const files = filesBelow(folder, 'Markdown', (name) => name.endsWith('.md'))
  const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0)
  if (bytes > MaxBytes) throw new UsageError(`${folder}: Markdown files have more than ${MaxBytes / 1024 / 1024} MiB`)
  return files.length === 0 ? undefined : files.map((file) => readFileSync(file, 'utf8')).join('\n')
}

const isManifest = (name: string): boolean => /\.(?:ya?ml|json)$/.test(name) || kustomizationNames.has(name)

function filesBelow(folder: string, format: string, isWanted: (name: string) => boolean): string[] {
  const paths: string[] = []
  const visit = (subfolder: string): void => {
    for (const entry of readdirSync(subfolder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(subfolder, entry.name)
      if (entry.isDirectory() && !skippedFolders.has(entry.name)) visit(path)
      else if (entry.isFile() && isWanted(entry.name)) paths.push(path)
      if (paths.length > MaxFiles) throw new UsageError(`${folder}: more than ${MaxFiles} ${format} files`)
    }
  }
  visit(folder)
  return paths
}

/** Returns the objects of a file; `undefined` when it is not YAML. */
export function parseManifests(text: string, file: string): Manifest[] | undefined {
  const lineCounter = new LineCounter()
  try {
    const documents = parseAllDocuments(text, { lineCounter, logLevel: 'error' })
    if (!Array.isArray(documents)) return []
    return documents.flatMap((document): Manifest[] => {
      if (document.errors.length > 0) throw document.errors[0]!
      const value: unknown = document.toJS()
      const line = lineCounter.linePos(document.contents?.range?.[0] ?? 0).line
      const items = record(value).kind === 'List' ? record(value).items : [value]
      return (Array.isArray(items) ? items : [])
        .filter((item) => Object.keys(record(item)).length > 0)
        .map((item) => ({ object: record(item), file, line }))
    })
  } catch {
    return undefined
  }
}

const isKustomization = (file: string): boolean => kustomizationNames.has(file.slice(dirname(file).length + 1))

const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []

/** Returns the paths of the patch files that a kustomization names in `patches` and `patchesStrategicMerge`. */
function patchFiles(file: string, kustomization: Manifest['object']): string[] {
  const { patches, patchesStrategicMerge } = kustomization
  const paths = Array.isArray(patches) ? patches.map((patch) => record(patch).path) : []
  return strings([...paths, ...strings(patchesStrategicMerge)]).map((path) => resolve(dirname(file), path))
}

/** Returns the paths of the patch files of all kustomizations (see `patchFiles`). */
const patchesOf = (byFile: ReadonlyMap<string, readonly Manifest[]>): Set<string> =>
  new Set(
    [...byFile].flatMap(([file, manifests]) =>
      isKustomization(file) ? manifests.flatMap(({ object }) => patchFiles(file, object)) : [],
    ),
  )

/**
 * Applies a kustomization to the CustomResourceDefinitions in the files that it lists as resources: adds its labels, and the
 * labels and `spec.conversion` from patch files that contain the CustomResourceDefinition. Ignores inline patches, JSON patches,
 * patches that name the CustomResourceDefinition only in `target`, and other transformations.
 */
function applyKustomization(file: string, byFile: Map<string, Manifest[]>): void {
  for (const { object: kustomization } of byFile.get(file) ?? []) {
    const pairs = Array.isArray(kustomization.labels) ? kustomization.labels.map((entry) => record(record(entry).pairs)) : []
    const labels = merged([record(kustomization.commonLabels), ...pairs])
    const patches = patchFiles(file, kustomization).flatMap((path) => byFile.get(path) ?? [])
    for (const resource of strings(kustomization.resources)) {
      const path = resolve(dirname(file), resource)
      byFile.set(
        path,
        (byFile.get(path) ?? []).map((manifest) => (isCrd(manifest) ? applyPatches(manifest, labels, patches) : manifest)),
      )
      if (byFile.get(path)!.length === 0) byFile.delete(path)
    }
  }
}

function applyPatches(manifest: Manifest, labels: Readonly<Record<string, unknown>>, patches: readonly Manifest[]): Manifest {
  const { name } = metadataOf(manifest)
  const ownPatches = patches.filter((patch) => isCrd(patch) && metadataOf(patch).name === name)
  const spec = ownPatches.reduce((spec, { object }) => {
    const { conversion } = record(object.spec)
    return conversion === undefined ? spec : { ...spec, conversion }
  }, record(manifest.object.spec))
  const addedLabels = merged([labels, ...ownPatches.map((patch) => metadataOf(patch).labels)])
  const metadata = { ...record(manifest.object.metadata), labels: { ...metadataOf(manifest).labels, ...addedLabels } }
  return { ...manifest, object: { ...manifest.object, metadata, spec } }
}

/** Removes duplicate CRDs, such as those of a built file beside the sources. Keeps the copy with the most labels, or the first of these. */
function withoutDuplicates(manifests: readonly Manifest[]): Manifest[] {
  const mostLabelled = new Map<string, Manifest>()
  for (const manifest of manifests.filter(isCrd)) {
    const { name, labels } = metadataOf(manifest)
    const previous = mostLabelled.get(name)
    if (previous === undefined || Object.keys(labels).length > Object.keys(metadataOf(previous).labels).length)
      mostLabelled.set(name, manifest)
  }
  return manifests.filter((manifest) => !isCrd(manifest) || mostLabelled.get(metadataOf(manifest).name) === manifest)
}
