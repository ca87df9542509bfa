/**
 * Reads what the first version of the data folder held, in a LevelDB:
 *   stores/<name>/revision                        revision of the last commit
 *   stores/<name>/objects/<resource>/<ns>/<name>  the object, as JSON
 * Its history is left behind: watches from before get 410 once, and list anew.
 */
import type { ClassicLevel } from 'classic-level'
import { freeze, type KubeObject } from '@capstan/kube'
import { applyTo, emptyImage, type Image, type Images } from './image.ts'

export async function readFormat1(db: ClassicLevel<string, string>): Promise<Images> {
  const images: Images = new Map()
  for await (const [at, text] of db.iterator({ gte: 'stores/', lt: 'stores0' })) {
    const [, encoded, part, resource, namespace, name] = at.split('/')
    const store = decodeURIComponent(encoded!)
    const image: Image = images.get(store) ?? emptyImage()
    images.set(store, image)
    if (part === 'objects') {
      const key = { resource: resource!, namespace: namespace!, name: name! }
      applyTo(image, { revision: image.revision, key, previous: undefined, object: freeze(JSON.parse(text) as KubeObject) })
    } else if (part === 'revision') image.revision = Number(text)
  }
  return images
}
