/**
 * Anchors of headings by GitHub's rules: letters are in lower case, spaces become hyphens, characters other than letters, digits, hyphens and
 * underscores are left out, and a repeated anchor gets a number. A link counts as its text.
 */

/** Returns a function that maps each heading of one page to its anchor. It must be called for all headings of the page, in their order. */
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
