/**
 * Anchors of headings as GitHub derives them: letters in lower case, digits, hyphens and underscores, hyphens for spaces, and a number after
 * repeated anchors. Other characters are left out.
 */

/** Returns a function for one page, which maps a heading to its anchor. The returned function must be called for all headings in their order. */
export function anchorNamer(): (heading: string) => string {
  const counts = new Map<string, number>()
  return (heading) => {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-')
    const count = counts.get(slug) ?? 0
    counts.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  }
}
