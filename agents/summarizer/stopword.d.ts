/** The package exports one list of stop words per language, named by ISO 639-3 code, without types. */
declare module 'stopword' {
  const lists: Record<string, readonly string[]>
  export = lists
}
