/** Path of an annotation in a JSON patch. */
export const annotationPath = (name: string): string =>
  `/metadata/annotations/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
