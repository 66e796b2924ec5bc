import { z } from 'zod'
import { type Io, print } from './io.ts'
import { oneLine, slugMax } from './printable.ts'
import { table } from './table.ts'

const text = z.string().optional().catch(undefined)
const entry = z.object({
  identifier: z.string(),
  displayName: text,
  type: text,
  url: text,
  score: z.number().optional().catch(undefined),
  metadata: z.object({ slug: text, reasons: text }).optional().catch(undefined),
})
const answer = z.object({
  results: z.array(z.unknown()).catch([]),
  referrals: z.array(z.unknown()).optional().catch([]),
})

type ReadEntry = z.output<typeof entry>

const kinds: Record<string, string> = {
  'application/a2a-agent-card+json': 'a2a',
  'application/mcp-server-card+json': 'mcp',
  'application/ai-catalog+json': 'catalog',
  'application/ai-registry+json': 'registry',
}

/** Entries of the answer to a search. Malformed ones are left out. */
export function entriesIn(body: unknown): { entries: ReadEntry[]; referrals: ReadEntry[] } {
  const read = (list: readonly unknown[]) =>
    list.flatMap((one) => {
      const { data } = entry.safeParse(one)
      return data === undefined ? [] : [data]
    })
  const { results = [], referrals = [] } = answer.safeParse(body).data ?? {}
  return { entries: read(results), referrals: read(referrals) }
}

/** Prints the entries as a table. An agent that is found as A2A agent and as MCP server has one row. */
export function printEntries(io: Io, entries: readonly ReadEntry[]): void {
  const rows = oneOfEach(entries).map(({ first, types }) => [
    oneLine(nameOf(first), 40),
    first.score === undefined ? '' : String(Math.round(first.score)),
    types.join(', '),
    oneLine(publisherOf(first), 60),
    oneLine(first.url ?? '', 120),
  ])
  print(io, table([['NAME', 'SCORE', 'TYPE', 'PUBLISHER', 'ADDRESS'], ...rows]))
}

/** Returns the command with which the user goes on with an entry, or undefined if none accepts its type. */
export function nextCommand(
  { type, url = '', metadata }: ReadEntry,
  isOwnGateway: boolean,
): string | undefined {
  if (isOwnGateway && /^[a-z0-9-]{1,63}$/.test(metadata?.slug ?? ''))
    return `npx parley send ${oneLine(metadata?.slug ?? '', slugMax)} "<text>"`
  // A URL that a shell would interpret is not made part of a command.
  if (!/^https?:\/\/[\w.:[\]/%~+=@,-]+$/.test(url)) return undefined
  const kind = kinds[type ?? '']
  if (kind === 'a2a')
    return `npx parley register ${url.replace(/\/\.well-known\/agent(?:-card)?\.json$/, '')}`
  return kind === 'mcp' ? `npx parley register --mcp ${url.replace(/\/server-card$/, '')}` : undefined
}

function oneOfEach(entries: readonly ReadEntry[]) {
  const rows = new Map<string, { first: ReadEntry; types: string[] }>()
  for (const one of entries) {
    const key = JSON.stringify([nameOf(one), publisherOf(one), one.score])
    const type = kinds[one.type ?? ''] ?? oneLine(one.type ?? '', 30)
    const row = rows.get(key)
    if (row === undefined) rows.set(key, { first: one, types: [type] })
    else if (row.types.includes(type)) rows.set(`${key} ${rows.size}`, { first: one, types: [type] })
    else row.types.push(type)
  }
  return [...rows.values()]
}

/** The last part of the identifier if the entry has no name (AI Catalog, "Resolving an Artifact's Display Name"). */
function nameOf({ displayName, identifier }: ReadEntry): string {
  return displayName ?? identifier.split(/[:/]/).at(-1) ?? ''
}

function publisherOf({ identifier }: ReadEntry): string {
  return /^urn:air:([^:]+):/.exec(identifier)?.[1] ?? ''
}
