import { type AddressBlock, addressBlock, addressValue, isInBlock, withoutMapping } from './address-block.ts'
import { hostName } from './host-name.ts'

/** Exceptions to the private-address guard: WEBHOOK_ALLOWED_HOSTS, REGISTRY_ALLOWED_HOSTS, FILE_ALLOWED_HOSTS. */
export interface AllowedHosts {
  /** Names that are allowed regardless of their addresses. */
  names: ReadonlySet<string>
  /** Addresses that are allowed in a URL or as the result of a lookup. */
  blocks: readonly AddressBlock[]
}

export const noExceptions: AllowedHosts = { names: new Set(), blocks: [] }

/**
 * Parses a comma-separated list of host names, addresses and CIDR blocks. IPv6 addresses may have brackets; ports and
 * wildcards are not allowed.
 * @throws Error with a sentence that contains the invalid entry
 */
export function parseAllowedHosts(list: string): AllowedHosts {
  const names = new Set<string>()
  const blocks: AddressBlock[] = []
  for (const entry of list.split(',').map((one) => one.trim())) {
    if (entry === '') continue
    const block = addressBlock(entry.replace(/^\[(.*)\]$/, '$1'))
    const name = block === undefined ? hostName(entry) : undefined
    if (block !== undefined) blocks.push(block)
    else if (name !== undefined) names.add(name)
    else throw new Error(`"${entry.slice(0, 100)}" is neither a host name, an address nor a CIDR block`)
  }
  return { names, blocks }
}

export function allowsName(allowed: AllowedHosts, name: string): boolean {
  return allowed.names.has(name)
}

export function allowsAddress(allowed: AllowedHosts, text: string): boolean {
  const value = addressValue(text)
  if (value === undefined) return false
  const address = withoutMapping(value)
  return allowed.blocks.some((block) => isInBlock(address, block) || isInBlock(value, block))
}
