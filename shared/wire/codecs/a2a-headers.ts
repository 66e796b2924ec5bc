import type { WireRequest } from './codec.ts'

/** The headers of A2A, in the spelling of the specification. */
export const versionHeader = 'A2A-Version'
export const extensionsHeader = 'A2A-Extensions'
/** The header of A2A 0.3, which the specifications of some extensions name for every version. */
export const earlierExtensionsHeader = 'X-A2A-Extensions'
export const requestHeaders = [versionHeader, extensionsHeader, earlierExtensionsHeader] as const

type Versioned = Pick<WireRequest, 'headers' | 'query'>

/** The names as Node spells them. They are constants, because every request is searched for them. */
const versionKey = versionHeader.toLowerCase()
const extensionsKeys = [extensionsHeader.toLowerCase(), earlierExtensionsHeader.toLowerCase()]

function headerIn(headers: WireRequest['headers'], key: string): string | undefined {
  const value = headers[key]
  return Array.isArray(value) ? value.join(',') : value
}

/** Returns the version in the header or in the query string; undefined if it is absent or empty. */
export function readVersion({ headers, query }: Versioned): string | undefined {
  const version = (headerIn(headers, versionKey) ?? parameterIn(query))?.trim()
  return version === '' ? undefined : version
}

function parameterIn(query: string | undefined): string | undefined {
  if (query === undefined || query === '') return undefined
  for (const [name, value] of new URLSearchParams(query)) if (name.toLowerCase() === versionKey) return value
  return undefined
}

/** Minor versions and patches are compatible. */
export const isVersion1 = (version: string): boolean => /^1(\.\d{1,4}){0,2}$/.test(version)

const [extensionsMax, extensionMaxChars] = [100, 2048]

/** Returns the URIs of the extensions that the client activates; those beyond the limits are ignored. */
export function readExtensions(headers: WireRequest['headers']): string[] {
  if (extensionsKeys.every((key) => headers[key] === undefined)) return []
  const text = extensionsKeys.flatMap((key) => headerIn(headers, key) ?? []).join()
  const uris = text.split(',', extensionsMax).map((uri) => uri.trim())
  return [...new Set(uris)].filter((uri) => uri !== '' && uri.length <= extensionMaxChars)
}

/** Creates the writer of the headers that name the activated extensions. */
export function extensionsWriter(header: string) {
  return (uris: readonly string[]): Record<string, string> =>
    uris.length === 0 ? {} : { [header.toLowerCase()]: uris.join(', ') }
}
