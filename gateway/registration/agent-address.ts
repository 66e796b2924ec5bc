import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import { outgoingUrl } from '@parley/kit/net/outgoing-url'
import { asRefused, refused } from './registration-errors.ts'

/**
 * The address of an agent as the registry keeps it: one spelling, without a slash at the end.
 * @throws ParleyError InvalidParams for what is no address, or one that the guard refuses by its text
 */
export function agentAddress(text: string, allowed: AllowedHosts): string {
  const url = read(text, allowed)
  if (url.search !== '') throw refused('query', 'The URL must not have a query')
  return url.href.replace(/\/+$/, '')
}

function read(text: string, allowed: AllowedHosts): URL {
  try {
    return outgoingUrl(text, allowed).url
  } catch (error) {
    throw asRefused(error, 'The URL')
  }
}
