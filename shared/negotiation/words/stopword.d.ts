/** The package has no types. It exports one list of stop words per language, named by its ISO 639-3 code. */
declare module 'stopword' {
  const lists: Record<string, readonly string[]>
  export = lists
}
