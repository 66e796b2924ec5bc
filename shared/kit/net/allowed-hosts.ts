import { type AddressBlock, addressBlock, addressValue, isInBlock, withoutMapping } from './address-block.ts'
import { hostName } from './host-name.ts'

/** Exceptions to the private-address guard: WEBHOOK_ALLOWED_HOSTS, REGISTRY_ALLOWED_HOSTS, FILE_ALLOWED_HOSTS. */
export interface AllowedHosts {
  /** Exactly these names, whatever they resolve to. */
  names: ReadonlySet<string>
  /** These addresses, written in a URL or found for a name. */
  blocks: readonly AddressBlock[]
}

export const noExceptions: AllowedHosts = { names: new Set(), blocks: [] }

/**
 * A comma list of host names, addresses and CIDR blocks; IPv6 with or without brackets, no ports, no wildcards.
 * @throws Error with one sentence that names the entry.
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
  const given = addressValue(text)
  if (given === undefined) return false
  const address = withoutMapping(given)
  return allowed.blocks.some((block) => isInBlock(address, block) || isInBlock(given, block))
}
