/** The part of Eleventy that `scripts/docs.ts` uses; the package has no declarations for it. */
declare module '@11ty/eleventy' {
  interface Config {
    setUseGitIgnore(use: boolean): void
    addGlobalData(name: string, value: unknown): void
    addFilter(name: string, filter: (...values: never[]) => unknown): void
    amendLibrary(name: 'md', amend: (markdown: Markdown) => void): void
  }

  interface Markdown {
    set(options: { html: boolean }): void
    readonly core: { readonly ruler: { push(name: string, rule: (state: State) => void): void } }
  }

  interface State {
    readonly tokens: readonly Token[]
    readonly env: unknown
  }

  /** One of markdown-it's tokens. */
  interface Token {
    readonly type: string
    readonly content: string
    readonly children: Token[] | null
    attrGet(name: string): string | null
    attrSet(name: string, value: string): void
  }

  class Eleventy {
    constructor(
      input: string,
      output: string,
      options: {
        quietMode: boolean
        configPath: false
        config(config: Config): { templateFormats: string[]; markdownTemplateEngine: false }
      },
    )
    write(): Promise<unknown>
  }
}
