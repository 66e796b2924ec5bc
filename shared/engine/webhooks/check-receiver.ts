import { type AllowedHosts, noExceptions } from '@parley/kit/net/allowed-hosts'
import { guardedResolver } from '@parley/kit/net/dns-resolver'
import { OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { outgoingUrl } from '@parley/kit/net/outgoing-url'
import { type Resolver, resolvePublic } from '@parley/kit/net/resolve-public'
import { fieldNames } from '@parley/wire/codecs/parley/push-config'
import { ParleyError } from '@parley/wire/errors'
import type { PushConfigInput } from '@parley/wire/model/call'

export interface CheckOptions {
  /** The hosts in WEBHOOK_ALLOWED_HOSTS. Default none. */
  allowed?: AllowedHosts
  resolver?: Resolver
  /** Timeout for the name resolution, after which the name counts as unresolvable. Default 2 s. */
  timeoutMs?: number
}

export const tokenMaxLength = 4096

/**
 * Checks the receiver of `set`, of an inline config or of the global webhook before anything is stored
 * (spec/webhooks.md#receiver-addresses). A name that does not resolve now is accepted, because every delivery
 * resolves it again.
 * @throws ParleyError InvalidParams with `data.reason` and `data.issues`, which repeat neither the URL nor
 * the token
 */
export async function checkReceiver(
  receiver: Pick<PushConfigInput, 'url' | 'token' | 'credentials'>,
  options: CheckOptions = {},
): Promise<void> {
  checkToken(receiver.token)
  checkCredentials(receiver.credentials)
  const allowed = options.allowed ?? noExceptions
  const { resolver = guardedResolver(allowed), timeoutMs = 2000 } = options
  try {
    const target = outgoingUrl(receiver.url, allowed)
    // An IP address needs no resolution.
    if (target.isAddress) return
    await resolvePublic(target, { allowed, resolver, signal: AbortSignal.timeout(timeoutMs) })
  } catch (error) {
    // Other resolution errors may be temporary.
    if (error instanceof OutgoingRefused) throw refused('url', error.reason, error.message)
  }
}

/** Printable ASCII without leading or trailing spaces, which every server accepts in a header. */
const headerText = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

function checkToken(token: string | undefined): void {
  if (token === undefined) return
  if (token.length > tokenMaxLength)
    throw refused('token', 'token', `The token must not be longer than ${tokenMaxLength} characters`)
  if (!headerText.test(token))
    throw refused(
      'token',
      'token',
      'The token must be printable ASCII characters, without line breaks and without spaces at its ends',
    )
}

/** Checks the scheme (RFC 9110, 5.6.2) and the credentials of the `Authorization` header. */
function checkCredentials(given: PushConfigInput['credentials']): void {
  if (given === undefined) return
  const { scheme, credentials } = given
  if (!/^[\w!#$%&'*+.^`|~-]{1,64}$/.test(scheme))
    throw refused('authentication', 'scheme', 'The scheme must be a single word such as Bearer')
  if (credentials.length > tokenMaxLength)
    throw refused(
      'authentication',
      'credentials',
      `The credentials must not be longer than ${tokenMaxLength} characters`,
    )
  if (!headerText.test(credentials))
    throw refused(
      'authentication',
      'credentials',
      'The credentials must be printable ASCII characters, without line breaks and without spaces at their ends',
    )
}

function refused(field: 'url' | 'token' | 'authentication', reason: string, message: string): ParleyError {
  const issues = [{ path: `${fieldNames.pushConfig}.${field}`, message }]
  return new ParleyError('InvalidParams', { message: `${message}.`, data: { reason, issues } })
}
