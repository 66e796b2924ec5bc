import type { OperationDescription } from '@parley/kit/http/route-description'
import { z } from 'zod'

const textMaxChars = 4096
const tokenMaxChars = 4096
const pageMax = 100
const [filterKeysMax, filterValuesMax, facetsMax] = [20, 50, 20]

const pageToken = z.string().max(tokenMaxChars)
const path = z.string().min(1).max(200)
const value = z.string().max(512)
const filter = z
  .record(path, z.union([value, z.array(value).max(filterValuesMax)]))
  .refine((given) => Object.keys(given).length <= filterKeysMax, `has more than ${filterKeysMax} fields`)
  .optional()
/** Prefixes of terms from other namespaces. Entries of this registry have none, so it selects nothing. */
const context = z
  .union([z.string().max(2000), z.record(z.string(), z.unknown()), z.array(z.unknown())])
  .optional()

export const searchRequest = z.strictObject({
  query: z.strictObject({ '@context': context, text: z.string().trim().min(1).max(textMaxChars), filter }),
  federation: z.enum(['auto', 'referrals', 'none']).default('auto'),
  pageSize: z.int().min(1).max(pageMax).default(10),
  pageToken: pageToken.optional(),
})

export const exploreRequest = z.strictObject({
  query: z
    .strictObject({
      '@context': context,
      text: z.string().trim().min(1).max(textMaxChars).optional(),
      filter,
    })
    .default({}),
  resultType: z.strictObject({
    facets: z
      .array(
        z.strictObject({
          field: path,
          limit: z.int().min(1).max(1000).default(20),
          minCount: z.int().min(1).default(1),
        }),
      )
      .min(1)
      .max(facetsMax),
  }),
})

export const listRequest = z.object({
  filter: z.string().max(2000).optional(),
  orderBy: z.string().max(200).optional(),
  pageSize: z.coerce.number().int().min(1).max(pageMax).default(20),
  pageToken: pageToken.optional(),
})

const trustManifest = z.object({
  identity: z.string(),
  identityType: z.literal('https'),
  attestations: z.array(z.object({ type: z.string(), uri: z.string(), mediaType: z.string() })).optional(),
  provenance: z.array(z.object({ relation: z.enum(['publishedFrom', 'derivedFrom']), sourceId: z.string() })),
})

export const catalogEntry = z.object({
  identifier: z.string(),
  displayName: z.string(),
  type: z.string(),
  url: z.string().optional(),
  data: z.record(z.string(), z.unknown()).optional(),
  description: z.string().optional(),
  tags: z.array(z.string()).optional(),
  capabilities: z.array(z.string()).optional(),
  representativeQueries: z.array(z.string()).min(2).max(5).optional(),
  version: z.string().optional(),
  updatedAt: z.string().optional(),
  publisher: z.object({
    identifier: z.string(),
    displayName: z.string(),
    identityType: z.enum(['did', 'dns']),
  }),
  metadata: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).optional(),
  trustManifest: trustManifest.optional(),
})

const catalogDocument = z.object({
  specVersion: z.literal('1.0'),
  host: z.object({ displayName: z.string(), identifier: z.string() }),
  entries: z.array(catalogEntry),
})

const searchAnswer = z.object({
  results: z.array(
    catalogEntry
      .omit({ representativeQueries: true })
      .extend({ score: z.int().min(0).max(100), source: z.string() }),
  ),
  referrals: z
    .array(z.object({ identifier: z.string(), displayName: z.string(), type: z.string(), url: z.string() }))
    .optional(),
  pageToken: z.string().optional(),
})

const exploreAnswer = z.object({
  resultType: z.literal('facets'),
  facets: z.record(
    z.string(),
    z.object({
      buckets: z.array(z.object({ value: z.string(), count: z.int() })),
      otherCount: z.int(),
    }),
  ),
})

const listAnswer = z.object({
  items: z.array(catalogEntry),
  total: z.int(),
  pageToken: z.string().optional(),
})

const ardError = z.object({ errorCode: z.string(), message: z.string() })

const shared = {
  tag: 'discovery',
  access: 'public',
  errorName: 'Ard',
  errorContent: { 'application/json': ardError },
} as const satisfies Partial<OperationDescription>

/** The descriptions of the routes (spec/catalog.md#catalog-and-search). */
export const ardApi = {
  search: {
    ...shared,
    summary: 'Search agents with words (ARD)',
    body: { json: searchRequest },
    responses: { 200: { description: 'The matching entries, best first', json: searchAnswer } },
  },
  explore: {
    ...shared,
    summary: 'Count entries by their fields (ARD)',
    body: { json: exploreRequest },
    responses: { 200: { description: 'The values of each field and their numbers', json: exploreAnswer } },
  },
  list: {
    ...shared,
    summary: 'List the entries of the catalog (ARD)',
    query: listRequest,
    responses: {
      200: { description: 'A page of entries', json: listAnswer },
      304: { description: 'Not modified' },
    },
  },
} as const satisfies Record<string, OperationDescription>

export const catalogQuery = z.object({ part: z.coerce.number().int().min(1).max(100_000).optional() })

/** Describes a catalog document of a media type. */
export function catalogApi(type: string): OperationDescription {
  return {
    ...shared,
    summary: 'Get the catalog of the gateway',
    query: catalogQuery,
    responses: {
      200: { description: 'An AI Catalog and ARD manifest', content: { [type]: catalogDocument } },
      304: { description: 'Not modified' },
    },
    errors: ['NotFound'],
  }
}
