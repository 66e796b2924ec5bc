import { isObject } from '@parley/wire/jsonrpc/envelope'
import { cleanLine } from '@parley/wire/model/clean-text'
import { z } from 'zod'
import { artifactTypes, type CatalogEntry } from './catalog-entry.ts'
import { cleanLines } from './clean-lines.ts'
import { publisherIn } from './entry-filter.ts'
import { placeholderDomain } from './publisher.ts'

/** What the manifest of another publisher contains. */
export interface ReadManifest {
  entries: CatalogEntry[]
  /** Addresses of nested catalogs. */
  nested: string[]
  /** Manifests inside of this one. */
  embedded: unknown[]
  /** Entries that are malformed or claim the domain of another publisher. */
  refused: number
}

const entriesMax = 1000
const [nameMax, descriptionMax, wordMax, wordsMax] = [200, 1000, 100, 20]
const dataMaxChars = 16_384

const texts = z.array(z.string()).max(1000).catch([])
const given = z.object({
  identifier: z
    .string()
    .max(500)
    .regex(/^urn:air:[a-zA-Z0-9.-]+(?::[a-zA-Z0-9._-]+)+$/),
  displayName: z.string().optional().catch(undefined),
  // The field of AI Catalog before version 1.0.
  mediaType: z.string().max(200).optional().catch(undefined),
  type: z.string().max(200).optional().catch(undefined),
  url: z.string().max(2000).optional(),
  data: z.record(z.string(), z.unknown()).optional(),
  description: z.string().catch(''),
  tags: texts,
  capabilities: texts,
  representativeQueries: texts,
  version: z.string().catch(''),
  updatedAt: z.iso.datetime({ offset: true }).optional().catch(undefined),
})

/**
 * Reads a manifest of ARD or an AI Catalog that was found at an address. An entry must claim the host of that address or a domain
 * below it as its publisher (section 4.5.1 of ARD). Trust manifests are left out, because they are not verified.
 */
export function readManifest(json: unknown, source: URL): ReadManifest | undefined {
  const list = isObject(json) ? json['entries'] : undefined
  if (!Array.isArray(list)) return undefined
  const read: ReadManifest = { entries: [], nested: [], embedded: [], refused: 0 }
  for (const item of list.slice(0, entriesMax)) {
    const { data: entry } = given.safeParse(item)
    const type = cleanLine(entry?.type ?? entry?.mediaType ?? '', 200).toLowerCase()
    const delivered = entry && deliveryOf(entry)
    if (entry === undefined || type === '' || delivered === undefined) read.refused += 1
    else if (type === artifactTypes.catalog && delivered.data !== undefined)
      read.embedded.push(delivered.data)
    else if (type === artifactTypes.catalog && delivered.url !== undefined) read.nested.push(delivered.url)
    else if (mayClaim(publisherIn(entry.identifier).toLowerCase(), source))
      read.entries.push(written(entry, type, source))
    else read.refused += 1
  }
  return read
}

/** Exactly one of both must be present. */
function deliveryOf({ url, data }: z.output<typeof given>): Pick<CatalogEntry, 'url' | 'data'> | undefined {
  if (url === undefined)
    return data !== undefined && JSON.stringify(data).length <= dataMaxChars ? { data } : undefined
  const parsed = URL.parse(url)
  if (data !== undefined || parsed === null || !/^https?:$/.test(parsed.protocol)) return undefined
  return parsed.username === '' && parsed.password === '' ? { url: parsed.href } : undefined
}

function mayClaim(publisher: string, { hostname }: URL): boolean {
  if (publisher === hostname || publisher.endsWith(`.${hostname}`)) return true
  return publisher === placeholderDomain && /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(hostname)
}

function written(entry: z.output<typeof given>, type: string, source: URL): CatalogEntry {
  const { identifier, displayName = '' } = entry
  const domain = publisherIn(identifier)
  const queries = cleanLines(entry.representativeQueries.slice(0, 10), nameMax).slice(0, 5)
  return {
    identifier,
    displayName: cleanLine(displayName, nameMax) || (identifier.split(':').at(-1) ?? identifier),
    type,
    ...deliveryOf(entry),
    description: cleanLine(entry.description, descriptionMax) || undefined,
    tags: wordsOf(entry.tags),
    capabilities: wordsOf(entry.capabilities),
    representativeQueries: queries.length < 2 ? undefined : queries,
    version: cleanLine(entry.version, wordMax) || undefined,
    updatedAt: entry.updatedAt,
    publisher: { identifier: domain, displayName: domain, identityType: 'dns' },
    metadata: { catalog: source.href },
  }
}

function wordsOf(list: string[]): string[] | undefined {
  const words = cleanLines(list.slice(0, 10 * wordsMax), wordMax).slice(0, wordsMax)
  return words.length === 0 ? undefined : words
}
