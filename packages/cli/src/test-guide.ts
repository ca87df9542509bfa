/**
 * Guides that run. Blocks of a page, in order: `sh` is run line by line, `sh background` is started and goes on, a language followed by
 * a file name is saved under that name, and `text` is what must come out: of the program that goes on when something was saved or
 * started before it, of the last command otherwise. Numbers may differ.
 */
import { readFileSync } from 'node:fs'

export type GuideStep =
  | { readonly kind: 'run'; readonly commands: readonly string[] }
  | { readonly kind: 'start'; readonly command: string }
  | { readonly kind: 'save'; readonly file: string; readonly text: string }
  /** `of`: whose output it is. */
  | { readonly kind: 'expect'; readonly of: 'command' | 'background'; readonly lines: readonly string[] }

export function guideSteps(path: string): GuideStep[] {
  const steps: GuideStep[] = []
  for (const [, language, what = '', text] of readFileSync(path, 'utf8').matchAll(/^```(\w+)(?: (\S+))?\n([^]*?)^```$/gm)) {
    const lines = text!.trimEnd().split('\n')
    if (language === 'text') {
      steps.push({ kind: 'expect', of: steps.at(-1)?.kind === 'run' ? 'command' : 'background', lines })
    } else if (language !== 'sh') steps.push({ kind: 'save', file: what, text: text! })
    else if (what === 'background') steps.push({ kind: 'start', command: lines.join('\n') })
    else steps.push({ kind: 'run', commands: lines })
  }
  return steps
}

/** A line of output without what differs from run to run: numbers, how columns are aligned, and the time before it. */
export const withoutNumbers = (line: string): string =>
  line
    .replace(/^\s*\d+\.\ds {2}/, '')
    .replace(/\d+/g, 'N')
    .replace(/\s+/g, ' ')
    .trim()
