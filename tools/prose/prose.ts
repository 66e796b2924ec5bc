import { globSync, statSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { trackedFiles } from '../tracked-files.ts'
import { countFile, type FileCount, type Hit, kinds, rateOf } from './count.ts'
import { isReadable } from './passages.ts'

const help = `Counts words and constructions that do not belong in plain technical English, per 10,000 words.

Usage: node tools/prose/prose.ts [options] [paths…]

Without paths, all files tracked by git are read.

  --summary      print the rates only, not every hit
  --patterns     print the number of hits of each pattern
  --max <rate>   highest accepted rate per 10,000 words (default 10)
  --worst <n>    number of files in the list of worst files (default 20)
`

/** The word list itself, and data that we do not edit. */
export const excluded = [
  /^tools\/prose\/(words|prose\.test)\.ts$/,
  /(^|\/)(vectors|dist|results)\//,
  /(^|\/)bench\/data\//,
]
export const maxPer10000 = 10

/** The files that git tracks, or all files outside a git working tree, relative to the root. */
export function repositoryFiles(root: string): string[] {
  const names = trackedFiles(root) ?? globSync('**/*', { cwd: root, exclude: ['**/node_modules', 'dist'] })
  return names.filter(
    (name) =>
      isReadable(name) &&
      !excluded.some((pattern) => pattern.test(name)) &&
      statSync(path.join(root, name)).isFile(),
  )
}

function filesIn(paths: string[]): string[] {
  return paths.flatMap((name) =>
    statSync(name).isFile()
      ? [name]
      : globSync(`${name}/**/*`)
          .filter((file) => isReadable(file) && statSync(file).isFile())
          .sort(),
  )
}

/** The first two segments of the folder, such as `gateway/routing` or `shared/wire`. */
function folderOf({ file }: FileCount): string {
  return path.dirname(file).split('/').slice(0, 2).join('/')
}

function rateTable(counts: FileCount[], groupOf: (count: FileCount) => string): string {
  const groups = Map.groupBy(counts, groupOf)
  const rows = [...groups].sort(([a], [b]) => (a < b ? -1 : 1))
  const row = (name: string, of: FileCount[]) => {
    const cells = kinds.map((kind) => {
      const { words, hits, per10000 } = rateOf(of, kind)
      return words === 0 ? ''.padStart(20) : `${hits}/${words} = ${per10000.toFixed(0)}`.padStart(20)
    })
    return `${name.padEnd(28)}${cells.join('')}`
  }
  const heading = `${'hits/words = per 10,000'.padEnd(28)}${kinds.map((kind) => kind.padStart(20)).join('')}`
  const firstList = kinds.map((kind) => {
    const matches = counts.reduce((sum, { first }) => sum + first[kind], 0)
    const { words } = rateOf(counts, kind)
    return (words === 0 ? '' : `${matches} = ${((matches / words) * 10_000).toFixed(0)}`).padStart(20)
  })
  return [
    heading,
    ...rows.map(([name, of]) => row(name, of)),
    row('all', counts),
    `${'all, first short list'.padEnd(28)}${firstList.join('')}`,
  ].join('\n')
}

function worstFiles(counts: FileCount[], most: number): string {
  return counts
    .toSorted((a, b) => b.hits.length - a.hits.length)
    .slice(0, most)
    .filter(({ hits }) => hits.length > 0)
    .map(({ file, hits, words }) => {
      const all = kinds.reduce((sum, kind) => sum + words[kind], 0)
      return `${String(hits.length).padStart(5)} in ${String(all).padStart(5)} words  ${file}`
    })
    .join('\n')
}

function patternCounts(hits: Hit[]): string {
  const groups = Map.groupBy(hits, ({ match }) => match.toLowerCase())
  return [...groups]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([match, of]) => `${String(of.length).padStart(5)}  ${match}`)
    .join('\n')
}

function main(): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: 'boolean' },
      summary: { type: 'boolean' },
      patterns: { type: 'boolean' },
      max: { type: 'string', default: String(maxPer10000) },
      worst: { type: 'string', default: '20' },
    },
  })
  if (values.help) return console.log(help)
  const counts = (positionals.length > 0 ? filesIn(positionals) : repositoryFiles(process.cwd())).map(
    (file) => countFile(file),
  )
  const hits = counts.flatMap((count) => count.hits)
  if (!values.summary) {
    for (const { file, line, kind, match, sentence, instead } of hits) {
      console.log(`${file}:${line}: ${kind}: “${match}” in “${sentence}”. Instead: ${instead}`)
    }
  }
  if (values.patterns) console.log(`\n${patternCounts(hits)}`)
  console.log(`\n${rateTable(counts, folderOf)}\n\nWorst files\n${worstFiles(counts, Number(values.worst))}`)
  const tooHigh = kinds.filter((kind) => rateOf(counts, kind).per10000 > Number(values.max))
  if (tooHigh.length === 0) return
  console.log(`\nAbove ${values.max} per 10,000: ${tooHigh.join(', ')}`)
  process.exitCode = 1
}

if (import.meta.main) main()
