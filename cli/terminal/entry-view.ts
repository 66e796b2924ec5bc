import { type Io, print, printJson } from './io.ts'
import { oneLine } from './printable.ts'

/** An entry of the registry, as far as it is shown. */
export interface ShownEntry {
  slug?: string
  name?: string
  did?: string | null
  url?: string
  status?: string
  revision?: string
  verified?: boolean
  admitted?: boolean
  quarantine?: { reason?: string } | null
  skills?: { id?: string }[]
  card_changes?: { field?: string }[]
  /** Of an answer to `admit`. */
  look_alikes?: { agent?: string; because?: string }[]
}

/** One entry in lines, or as JSON. */
export function printEntry(io: Io, entry: unknown, json: true | undefined): void {
  if (json) return printJson(io, entry)
  const {
    slug,
    did,
    url,
    status,
    revision,
    verified,
    admitted,
    quarantine,
    skills,
    card_changes,
    look_alikes,
  } = entry as ShownEntry
  const rows: [string, string][] = [
    ['agent', slug ?? ''],
    ['did', did ?? 'none'],
    ['address', url ?? ''],
    ['status', status ?? ''],
    ['verified', verified === true ? 'yes' : 'no'],
    ['admitted', admitted === true ? 'yes' : `no: npx parley admit ${slug ?? ''}`],
    ...(quarantine ? ([['quarantine', quarantine.reason ?? '']] as [string, string][]) : []),
    ['skills', (skills ?? []).map(({ id }) => id).join(', ')],
    ...(revision ? ([['revision', revision]] as [string, string][]) : []),
    ...(card_changes?.length
      ? ([['changed', card_changes.map(({ field }) => field).join(', ')]] as [string, string][])
      : []),
    ...(look_alikes?.length
      ? ([['looks like', look_alikes.map(({ agent, because }) => `${agent} (${because})`).join(', ')]] as [
          string,
          string,
        ][])
      : []),
  ]
  for (const [name, value] of rows) print(io, `${name.padEnd(10)}  ${oneLine(value, 200)}\n`)
}
