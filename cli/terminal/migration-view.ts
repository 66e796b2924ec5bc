import type { Progress } from '@parley/engine/migration/copy'
import type { PartReport } from '@parley/engine/migration/migrate'

const everyMs = 2000
const number = (value: number) => value.toLocaleString('en')

/** Formats progress as at most one line every two seconds. */
export function progressLines(write: (line: string) => void): (name: string, progress: Progress) => void {
  let written = performance.now()
  let began = { what: '', at: 0, done: 0 }
  return (name, { step, kind, done, total }) => {
    const now = performance.now()
    const what = `${name} ${step} ${kind}`
    if (began.what !== what) began = { what, at: now, done }
    if (now - written < everyMs) return
    written = now
    const rate = now > began.at ? Math.round(((done - began.done) * 1000) / (now - began.at)) : 0
    const verb = step === 'copy' ? 'copying' : 'verifying'
    const share = total > 0 ? `, ${Math.floor((done * 100) / total)} %` : ''
    write(`${name}: ${verb} ${kind}, ${number(done)} of ${number(total)}${share}, ${number(rate)} a second`)
  }
}

/** Formats the migration report for an operator. */
export function reportLines(reports: PartReport[], seconds: number): string[] {
  const lines = reports.flatMap(({ name, scope, state, rows, verified }) => {
    const counts = Object.entries(rows).filter(([, count]) => count > 0)
    const documents = Object.entries(verified)
    return [
      `${name} (${scope}): ${said[state]}`,
      ...(state === 'migrated' ? [] : counts.map(([kind, count]) => `  ${kind.padEnd(22)} ${number(count)}`)),
      ...documents.map(
        ([collection, { count, checksum }]) =>
          `  ${collection.padEnd(22)} ${number(count).padStart(11)}  sha256 ${checksum.slice(0, 16)}… the same on both sides`,
      ),
    ]
  })
  const total = reports
    .flatMap(({ verified }) => Object.values(verified))
    .reduce((sum, { count }) => sum + count, 0)
  const rate = seconds > 0 ? Math.round(total / seconds) : 0
  if (total > 0)
    lines.push(`${number(total)} documents in ${seconds.toFixed(1)} s (${number(rate)} a second, verified).`)
  return lines
}

const said: Record<PartReport['state'], string> = {
  'would migrate': 'would be moved',
  migrated: 'moved',
  already: 'moved already, by an earlier run',
}
