/**
 * Returns the plural of a kind, which is its resource name. Core computes the name of a provider's CustomResourceDefinition from it,
 * without discovery. Providers must therefore name their resources by these rules.
 *
 * Upstream: gobuffalo/flect v1.0.3 on the lower-cased kind.
 */
export function pluralOf(kind: string): string {
  const word = kind.toLowerCase()
  const plural = wholeWords.get(word)
  if (plural !== undefined) return plural
  if (wholePlurals.has(word)) return word
  for (const [singular, ending] of endings) {
    if (word.endsWith(ending)) return word
    if (word.endsWith(singular)) return word.slice(0, -singular.length) + ending
  }
  return word.endsWith('s') ? word : `${word}s`
}

/** Parses pairs of a singular and a plural, separated by commas. */
const pairs = (text: string): [singular: string, plural: string][] =>
  text.split(',').map((pair) => {
    const [singular = '', plural = ''] = pair.trim().split(/\s+/)
    return [singular, plural]
  })

/** Words with irregular plurals, also at the end of a longer word; the first match applies. */
const irregular = pairs(`
  graffiti graffiti, shoe shoes, formula formulas, agenda agendas, pretorium pretoriums, cookie cookies, movie movies,
  move moves, hive hives, chive chives, thief thieves, hoof hoofs, dwarf dwarfs, rice rice, news news, money money,
  jeans jeans, information information, equipment equipment, tomato tomatoes, potato potatoes, buffalo buffaloes,
  topaz topazes, ache aches, pause pauses, muse muses, misuse misuses, house houses, fuse fuses, excuse excuses, cruse
  cruses, clause clauses, cause causes, abuse abuses, vedalia vedalias, basis bases, base bases, testis testes, thesis
  theses, oasis oases, genesis geneses, ellipsis ellipses, crisis crises, helix helices, radix radices, appendix
  appendices, vortex vortices, vertex vertices, latex latices, index indices, codex codices, apex apices, uva uvae,
  praecava praecavae, postcava postcavae, larva larvae, vita vitae, minutia minutiae, differentia differentiae,
  vertebra vertebrae, alumna alumnae, genus genera, corpus corpora, syllabus syllabi, radius radii, octopus octupuses,
  nucleus nuclei, locus loci, focus foci, coccus cocci, cactus cacti, bacillus bacilli, alumnus alumni, quota quotas,
  curriculum curriculums, symposium symposia, auditorium auditoria, aquarium aquaria, stadium stadiums, medium media,
  media media, taxon taxa, phenomenon phenomena, noumenon noumena, mitochondrion mitochondria, lexicon lexica,
  ganglion ganglia, criterion criteria, bureau bureaus, fabliau fabliaux, adieu adieux, person people, woman women,
  tooth teeth, mouse mice, human humans, man men, goose geese, foot feet, child children, you you, tuna tuna, trout
  trout, swine swine, species species, shrimp shrimp, sheep sheep, series series, salmon salmon, police police, moose
  moose, fish fish, deer deer, chassis chassis, blues blues, bison bison, beef beef, aircraft aircraft
`)

/** Words with irregular plurals that do not apply to longer words. */
const irregularAlone = pairs(`
  ox oxen, louse lice, die dice, axis axes, alias aliases, use uses, toe toes
`)

/** Second plurals of irregular words. */
const secondPlurals = `
  adieus alumnuses apexes appendixes aquariums auditoriums beefs buffalos bureaux cactuses codexes corpuses curricula
  dwarves fishes focuses formulae ganglions helixes hooves indexes latexes lexicons locuses mitochondrions nucleuses
  octopi radiuses radixes salmons shrimps stadia swines symposiums trouts tunas vertexes vortexes
`

const wholeWords = new Map([...irregular, ...irregularAlone])
const wholePlurals = new Set([...wholeWords.values(), ...secondPlurals.trim().split(/\s+/)])

/** Endings with their plurals; the first match applies. */
const endings = [
  ...irregular,
  ...pairs(`
    tive tives, eaf eaves, oaf oaves, afe aves, arf arves, rfe rves, rf rves, lf lves, fe ves, ay ays, ey eys, oy oys,
    quy quies, uy uys, y ies, eau eaux, bula bulae, dula bulae, lula bulae, nula bulae, vula bulae, hedron hedra, ium
    ia, seum seums, eum ea, oum oa, stracum straca, dum da, elum ela, ilum ila, olum ola, ulum ula, llum lla, ylum yla,
    imum ima, ernum erna, gnum gna, brum bra, crum cra, terum tera, serum sera, trum tra, antum anta, atum ata, entum
    enta, etum eta, itum ita, otum ota, utum uta, ctum cta, ovum ova, trix trices, iasis iases, mesis meses, kinesis
    kineses, resis reses, gnosis gnoses, opsis opses, ysis yses, ouse ouses, lause lauses, us uses, ch ches, io ios, sh
    shes, ss sses, ez ezzes, iz izzes, tz tzes, zz zzes, ano anos, lo los, to tos, oo oos, o oes, x xes
  `),
]
