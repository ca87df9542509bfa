/** Downloads a provider's manifests from a URL: one file, or the components file and metadata of a release. */
import { type Manifest } from '@capstan/conformance'
import { messageOf, seconds } from '@capstan/kube'
import { UsageError } from '../io.ts'
import { MaxBytes, parseManifests } from './read-manifests.ts'

export const isUrl = (path: string): boolean => /^https?:\/\//.test(path)

/** Components files that are searched for in a release, with the names that clusterctl expects. */
const componentsFiles = ['infrastructure', 'bootstrap', 'control-plane', 'ipam'].map((type) => `${type}-components.yaml`)

/** Matches the end of a release's URL, and captures the version. */
const releaseUrl = /\/releases\/(?:tag|download)\/([^/]+)\/?$/

/** Returns the version in the URL of a release or of one of its files; `undefined` for a URL without such a version. */
export const releaseOf = (url: string): string | undefined => /\/releases\/(?:tag|download)\/(v?\d+\.\d+[^/]*)/.exec(url)?.[1]

/** Downloads one file; for a release, its components file and, if it exists, its metadata.yaml. @throws UsageError */
export async function fetchManifests(url: string): Promise<readonly Manifest[]> {
  if (!releaseUrl.test(url)) return (await fetchFile(url)) ?? failMissing(url)
  const folder = url.replace(releaseUrl, '/releases/download/$1')
  const manifestsByUrl = new Map<string, readonly Manifest[]>()
  for (const name of componentsFiles) {
    const manifests = await fetchFile(`${folder}/${name}`)
    if (manifests) manifestsByUrl.set(`${folder}/${name}`, manifests)
  }
  const [components, ...furtherComponents] = manifestsByUrl.values()
  if (!components) throw new UsageError(`${url}: the release has none of the files ${componentsFiles.join(', ')}`)
  // Each components file belongs to one provider.
  if (furtherComponents.length > 0)
    throw new UsageError(`${url}: the release has several providers`, `Lint one of ${[...manifestsByUrl.keys()].join(', ')}.`)
  return [...components, ...((await fetchFile(`${folder}/metadata.yaml`)) ?? [])]
}

/** Time limit of each request. */
const timeLimit = seconds(60)

const failMissing = (url: string): never => {
  throw new UsageError(`${url}: no such file`)
}

/** Returns the manifests of a file; `undefined` when the server responds with 404. */
async function fetchFile(url: string): Promise<readonly Manifest[] | undefined> {
  let text: string
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeLimit) })
    if (response.status === 404) {
      await response.body?.cancel()
      return undefined
    }
    if (!response.ok) throw new Error(`the server responded with ${response.status}`)
    text = await limitedText(response)
  } catch (err) {
    throw new UsageError(`${url}: ${failureOf(err)}`, undefined, { cause: err })
  }
  const manifests = parseManifests(text, url)
  if (!manifests) throw new UsageError(`${url}: expected YAML`)
  return manifests
}

/** Returns why a request failed. If a connection fails, `fetch` throws "fetch failed" or "terminated", with the actual error as the cause. */
function failureOf(err: unknown): string {
  if (err instanceof Error && err.name === 'TimeoutError') return `no complete response within ${timeLimit / 1000} s`
  const cause = err instanceof Error ? err.cause : undefined
  // An AggregateError of several addresses has no message.
  return cause instanceof AggregateError ? cause.errors.map(messageOf).join(', ') : messageOf(cause ?? err)
}

async function limitedText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > MaxBytes) throw new Error(`manifests have more than ${MaxBytes / 1024 / 1024} MiB`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
