import net from 'node:net'
import { type AllowedHosts, allowsAddress, allowsName, noExceptions } from './allowed-hosts.ts'
import { hostName, localName } from './host-name.ts'
import { OutgoingRefused } from './outgoing-errors.ts'
import { verdict } from './public-address.ts'

export const urlMaxLength = 2048

/** A URL whose text has passed the checks but whose name is not resolved yet. */
export interface OutgoingUrl {
  /** The URL without a fragment and without a trailing dot in the host name. */
  url: URL
  /** The name in lower-case ASCII, or the address without brackets. */
  host: string
  /** Whether the host is an address, which needs no lookup. */
  isAddress: boolean
  /** Scheme, host and port. */
  origin: string
  /** Path and query, as in a request line. */
  path: string
}

/**
 * Parses and checks an untrusted URL before its name is resolved (spec/webhooks.md#receiver-addresses).
 * @throws OutgoingRefused
 */
export function outgoingUrl(text: string, allowed: AllowedHosts = noExceptions): OutgoingUrl {
  const authority = authorityOf(text)
  const url = URL.parse(text)
  if (url === null) throw unreadable(authority)
  if (authority.includes('@') || url.username !== '' || url.password !== '')
    throw new OutgoingRefused('credentials', 'The URL must not contain a user name or password')
  if (url.port === '0') throw badPort()
  const host = hostOf(url, allowed)
  url.hash = ''
  return { url, ...host, origin: url.origin, path: url.pathname + url.search }
}

/** Returns the URL for messages: without a user name and password, and not longer than 200 characters. */
export function shownUrl(text: string): string {
  return text.replace(/^([^/?#]*\/\/)[^/?#]*@/, '$1…@').slice(0, 200)
}

/** Returns the authority as written, because other parsers interpret some tolerated spellings differently. */
function authorityOf(text: string): string {
  if (text.length > urlMaxLength)
    throw new OutgoingRefused('too_long', `The URL must not be longer than ${urlMaxLength} characters`)
  if (/[\p{Cc}\p{Zs}\p{Zl}\p{Zp}\\]/u.test(text))
    throw new OutgoingRefused(
      'malformed',
      'The URL must not contain spaces, control characters or backslashes',
    )
  const scheme = /^([a-z][a-z\d+.-]*):/i.exec(text)?.[1]?.toLowerCase()
  if (scheme === undefined) throw new OutgoingRefused('malformed', 'The URL must be absolute')
  if (scheme !== 'http' && scheme !== 'https')
    throw new OutgoingRefused('scheme', 'The URL must begin with http:// or https://')
  const authority = /^https?:\/\/([^/?#]+)/i.exec(text)?.[1]
  if (authority === undefined) throw new OutgoingRefused('host', 'The URL must contain a host')
  return authority
}

function badPort(): OutgoingRefused {
  return new OutgoingRefused('port', 'The port of the URL must be between 1 and 65535')
}

function unreadable(authority: string): OutgoingRefused {
  if (/:\d+$/.test(authority) && URL.canParse(`http://${authority.replace(/:\d+$/, '')}`)) return badPort()
  if (authority.includes('%') && authority.includes('['))
    return new OutgoingRefused('host', 'The URL must not contain an address with a zone')
  return new OutgoingRefused('malformed', 'The URL is malformed')
}

/** The URL parser has normalized all spellings of an IPv4 address (octal, short, full-width, encoded). */
function hostOf(url: URL, allowed: AllowedHosts): { host: string; isAddress: boolean } {
  const literal = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (net.isIP(literal) > 0) {
    const reach = verdict(literal)
    if (!reach.public && !allowsAddress(allowed, literal)) throw notPublic(reach.is)
    return { host: literal, isAddress: true }
  }
  const host = hostName(url.hostname)
  if (host === undefined)
    throw new OutgoingRefused('host', 'The host of the URL is neither a name nor an address')
  const local = localName(host)
  if (local !== undefined && !allowsName(allowed, host))
    throw new OutgoingRefused('local_name', `The host of the URL is not a public name (${local})`)
  url.hostname = host
  return { host, isAddress: false }
}

/** Returns the error for a rejected address. The message contains its kind but never the address. */
export function notPublic(is: string): OutgoingRefused {
  return new OutgoingRefused('not_public', `The host of the URL is not on the public internet (${is})`)
}
