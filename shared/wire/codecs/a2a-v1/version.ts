import { ParleyError } from '../../errors.ts'
import type { WireRequest } from '../codec.ts'

type Versioned = Pick<WireRequest, 'headers' | 'query'>

/** Returns the version in the header or in the query string; undefined if it is absent or empty. */
export function readVersion({ headers, query }: Versioned): string | undefined {
  const header = headers['a2a-version']
  const given = (Array.isArray(header) ? header.join(',') : header) ?? parameterIn(query)
  const version = given?.trim()
  return version === '' ? undefined : version
}

function parameterIn(query: string | undefined): string | undefined {
  if (query === undefined || query === '') return undefined
  for (const [name, value] of new URLSearchParams(query))
    if (name.toLowerCase() === 'a2a-version') return value
  return undefined
}

/** Minor versions and patches are compatible. */
export const isVersion1 = (version: string): boolean => /^1(\.\d{1,4}){0,2}$/.test(version)

/** Accepts every 1.x. A request without a version counts as one of the version that its path or method implies. */
export function negotiate(request: Versioned): Record<string, string> {
  const version = readVersion(request)
  if (version === undefined || isVersion1(version)) return { 'a2a-version': '1.0' }
  throw new ParleyError('VersionNotSupported', {
    message: 'This A2A-Version is not supported at this address',
    data: { supported: ['1.0'] },
  })
}

const extensionsHeader = 'a2a-extensions'
/** The header of A2A 0.3, which the specifications of some extensions name for every version. */
const earlierHeader = 'x-a2a-extensions'
const [extensionsMax, extensionMaxChars] = [100, 2048]

/** Returns the URIs of the extensions that the client activates; those beyond the limits are ignored. */
export function readExtensions(headers: WireRequest['headers']): string[] {
  const text = [headers[extensionsHeader] ?? [], headers[earlierHeader] ?? []].flat().join(',')
  const uris = text.split(',', extensionsMax).map((uri) => uri.trim())
  return [...new Set(uris)].filter((uri) => uri !== '' && uri.length <= extensionMaxChars)
}

export function writeExtensions(uris: readonly string[], name = extensionsHeader): Record<string, string> {
  return uris.length === 0 ? {} : { [name]: uris.join(', ') }
}
