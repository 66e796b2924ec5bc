/** The address of a receiver without its path, which may contain a secret. */
export const originOf = (url: string): string => `${URL.parse(url)?.origin ?? ''}/…`

/** The expression for URLs takes quadratic time. */
const textMaxChars = 1000

/** Replaces the paths of URLs in an error, and the path of the receiver itself. */
export function withoutPaths(text: string, url: string): string {
  const { pathname = '', search = '' } = URL.parse(url) ?? {}
  const paths = [`${pathname}${search}`, pathname, search].filter((path) => path.length > 1)
  const isolated = text.slice(0, textMaxChars).replace(/\b[a-z][a-z\d+.-]*:\/\/[^\s"'<>]+/gi, originOf)
  return paths.reduce((rest, path) => rest.replaceAll(path, '/…'), isolated)
}

/** A webhook for a person who may not see the texts of its owner. */
export function withoutSecrets({ url, last_error: error }: { url: string; last_error: string | null }) {
  return { url: originOf(url), last_error: error === null ? null : withoutPaths(error, url) }
}
