import { readEntry } from '@parley/wire/codecs/parley/registry'
import { type Io, print, printJson } from './io.ts'
import { oneLine } from './printable.ts'

/** Registries of other implementations list skills by their id. */
export function skillName(skill: string | { id?: string | undefined }): string {
  return typeof skill === 'string' ? skill : (skill.id ?? '')
}

/** Prints one entry as lines of text or as JSON. */
export function printEntry(io: Io, entry: unknown, json: true | undefined): void {
  if (json) return printJson(io, entry)
  const shown = readEntry(entry)
  const { slug, did, url, status, revision, verified, admitted, quarantine } = shown
  const { skills, cardChanges, lookAlikes } = shown
  const rows: [string, string][] = [
    ['agent', slug ?? ''],
    ['did', did ?? 'none'],
    ['address', url ?? ''],
    ['status', status ?? ''],
    ['verified', verified === true ? 'yes' : 'no'],
    ['admitted', admitted === true ? 'yes' : `no: npx parley admit ${slug ?? ''}`],
    ...(quarantine ? ([['quarantine', quarantine.reason ?? '']] as [string, string][]) : []),
    ['skills', (skills ?? []).map(skillName).join(', ')],
    ...(revision ? ([['revision', revision]] as [string, string][]) : []),
    ...(cardChanges?.length
      ? ([['changed', cardChanges.map(({ field }) => field).join(', ')]] as [string, string][])
      : []),
    ...(lookAlikes?.length
      ? ([['looks like', lookAlikes.map(({ agent, because }) => `${agent} (${because})`).join(', ')]] as [
          string,
          string,
        ][])
      : []),
  ]
  for (const [name, value] of rows) print(io, `${name.padEnd(10)}  ${oneLine(value, 200)}\n`)
}
