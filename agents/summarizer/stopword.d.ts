/** The package names a list of stop words per language by its ISO 639-3 code; it brings no types. */
declare module 'stopword' {
  const lists: Record<string, readonly string[]>
  export = lists
}
