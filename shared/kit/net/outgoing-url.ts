import net from 'node:net'
import { type AllowedHosts, allowsAddress, allowsName, noExceptions } from './allowed-hosts.ts'
import { hostName, localName } from './host-name.ts'
import { OutgoingRefused } from './outgoing-errors.ts'
import { verdict } from './public-address.ts'

export const urlMaxLength = 2048

/** A URL that may be asked, as far as its text tells. */
export interface OutgoingUrl {
  /** Without fragment, and without the dot at the end of a host name. */
  url: URL
  /** The name in lower-case ASCII, or the address without brackets. */
  host: string
  /** The host is an address: nothing is to be resolved. */
  isAddress: boolean
  /** Scheme, host and port; and path with query, as a request names it. */
  origin: string
  path: string
}

/**
 * Reads a URL from outside, before anything is resolved (spec/webhooks.md#receiver-addresses).
 * @throws OutgoingRefused
 */
export function outgoingUrl(text: string, allowed: AllowedHosts = noExceptions): OutgoingUrl {
  const authority = authorityOf(text)
  const url = URL.parse(text)
  if (url === null) throw unreadable(authority)
  if (authority.includes('@') || url.username !== '' || url.password !== '')
    throw new OutgoingRefused('credentials', 'The URL must not hold a user name or password')
  if (url.port === '0') throw badPort()
  const host = hostOf(url, allowed)
  url.hash = ''
  return { url, ...host, origin: url.origin, path: url.pathname + url.search }
}

/** The part between the slashes and the path, as it was written: the URL parser forgives what others read otherwise. */
function authorityOf(text: string): string {
  if (text.length > urlMaxLength)
    throw new OutgoingRefused('too_long', `The URL must not be longer than ${urlMaxLength} characters`)
  if (/[\p{Cc}\p{Zs}\p{Zl}\p{Zp}\\]/u.test(text))
    throw new OutgoingRefused('malformed', 'The URL must not hold spaces, control characters or backslashes')
  const scheme = /^([a-z][a-z\d+.-]*):/i.exec(text)?.[1]?.toLowerCase()
  if (scheme === undefined) throw new OutgoingRefused('malformed', 'The URL must be an absolute one')
  if (scheme !== 'http' && scheme !== 'https')
    throw new OutgoingRefused('scheme', 'The URL must begin with http:// or https://')
  const authority = /^https?:\/\/([^/?#]+)/i.exec(text)?.[1]
  if (authority === undefined) throw new OutgoingRefused('host', 'The URL must name a host')
  return authority
}

function badPort(): OutgoingRefused {
  return new OutgoingRefused('port', 'The port of the URL must be between 1 and 65535')
}

function unreadable(authority: string): OutgoingRefused {
  if (/:\d+$/.test(authority) && URL.canParse(`http://${authority.replace(/:\d+$/, '')}`)) return badPort()
  if (authority.includes('%') && authority.includes('['))
    return new OutgoingRefused('host', 'The URL must not hold an address with a zone')
  return new OutgoingRefused('malformed', 'The URL cannot be read')
}

/** The URL parser has brought every spelling of an IPv4 address (octal, short, full-width, encoded) into one. */
function hostOf(url: URL, allowed: AllowedHosts): { host: string; isAddress: boolean } {
  const literal = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (net.isIP(literal) > 0) {
    const found = verdict(literal)
    if (!found.public && !allowsAddress(allowed, literal)) throw notPublic(found.is)
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

/** The refusal of an address; it says what the address is, never which it is. */
export function notPublic(is: string): OutgoingRefused {
  return new OutgoingRefused('not_public', `The host of the URL is not on the public internet (${is})`)
}
