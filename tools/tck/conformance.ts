import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { countsOf, failuresOf, isMandatory, type KitRun } from './results.ts'

const file = path.resolve(import.meta.dirname, '..', '..', 'docs', 'conformance.md')

/** Replaces the sections of these branches in docs/conformance.md. */
export async function writeConformance(runs: readonly KitRun[]): Promise<void> {
  await writeSections(new Map(runs.map((run) => [run.branch, sectionOf(run)])))
}

/** Replaces sections of docs/conformance.md by name. A section is between `<!-- name -->` and `<!-- end of name -->`. */
export async function writeSections(sections: ReadonlyMap<string, string>): Promise<void> {
  let text = await readFile(file, 'utf8')
  for (const [name, section] of sections) {
    const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`]
    const [before, rest] = split(text, begin)
    const [, after] = split(rest, end)
    text = `${before}${begin}\n\n${section}\n\n${end}${after}`
  }
  await writeFile(file, text)
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark)
  if (at === -1) throw new Error(`${file} has no line ${mark}`)
  return [text.slice(0, at), text.slice(at + mark.length)]
}

function sectionOf(run: KitRun): string {
  const date = new Date().toISOString().slice(0, 10)
  const counts = countsOf(run).map(([name, { passed = 0, failed = 0, skipped = 0 }]) => [
    name,
    String(passed),
    String(failed),
    String(skipped),
  ])
  const failures = failuresOf(run).map(({ name, reason, explanation }) => [
    `\`${name.replace(/^.*::/, '')}\``,
    plain(explanation ?? reason),
  ])
  const detail = Object.keys(run.requirements).length > 0 ? requirementsOf(run) : testsOf(run)
  return [
    `${date}, commit \`${run.commit.slice(0, 12)}\` of the kit.`,
    tableOf(['', 'passed', 'failed', 'skipped'], counts),
    ...(failures.length > 0 ? [tableOf(['Failed', 'Reason'], failures)] : ['Nothing failed.']),
    detail,
  ].join('\n\n')
}

function requirementsOf({ requirements }: KitRun): string {
  const all = Object.entries(requirements).sort(([a], [b]) => a.localeCompare(b))
  const columns = ['jsonrpc', 'http_json', 'agent_card']
  const rows = all
    .filter(([, { transports }]) => columns.some((column) => column in transports))
    .map(([id, { level, transports }]) => [
      id,
      level,
      ...columns.map((column) => transports[column]?.toLowerCase() ?? ''),
    ])
  const untested = all.filter(([, { status }]) => status === 'NOT TESTED').map(([id]) => id)
  return [
    tableOf(['Requirement', 'Level', 'JSON-RPC', 'HTTP+JSON', 'Card'], rows),
    `The kit lists these requirements but has no test of them: ${untested.join(', ')}.`,
  ].join('\n\n')
}

function testsOf({ tests }: KitRun): string {
  const rows = tests.filter(isMandatory).map((test) => {
    const [file = '', ...name] = test.test.split('::')
    const why = test.outcome === 'skipped' ? plain(test.reason.replace(/^Skipped: /, '')) : ''
    return [`${path.basename(file, '.py')}: ${name.at(-1) ?? ''}`, test.outcome, why]
  })
  return tableOf(['Mandatory test', 'Result', 'Reason'], rows)
}

/** The text as a cell of a table. */
export const plain = (text: string) => text.replaceAll('|', '\\|').replace(/\s+/g, ' ').slice(0, 320)

export function tableOf(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n')
}
