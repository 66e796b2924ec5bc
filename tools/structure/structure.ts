import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { type Graph, longestChain } from './layers.ts'
import { type FileKind, kindOf, readProduct, type SourceFile } from './source-files.ts'

const help = `Measures the structure of a checkout: files per folder, lines, layers, type assertions, long files, fragments.
Product code is every TypeScript file outside tests, testing, tools, bench, e2e, scripts, docs and the root folder.

Usage: node tools/structure/structure.ts [options]

  --checkout <folder>  the checkout to measure (default: the working folder)
  --graph              also print which folder of a package imports which
  --assertions         also print file and line of each type assertion
  --touched <rev>      print only the files that a commit or a range (a..b) touches, per kind; may be repeated
`

const longFileLines = 400
const fragmentLines = 25
const folderMaxFiles = 25

/** The folders of one package and the folders that each imports. `depth` limits the path segments in a folder name. */
export function folderGraph(files: SourceFile[], depth = Number.POSITIVE_INFINITY): Graph {
  const [{ package: root } = { package: '' }] = files
  const names = new Set(files.map(({ name }) => name))
  const folderOf = (name: string) => {
    const segments = path.dirname(path.posix.relative(root, name)).split('/')
    return segments.slice(0, depth).join('/')
  }
  const graph: Graph = new Map()
  for (const { name, imports } of files) {
    const folder = folderOf(name)
    // Files in the root folder of a package are its composition root, not a layer.
    if (folder === '.') continue
    const targets = graph.get(folder) ?? new Set()
    graph.set(folder, targets)
    for (const to of imports) {
      if (names.has(to) && folderOf(to) !== folder && folderOf(to) !== '.') targets.add(folderOf(to))
    }
  }
  return graph
}

/** Files of at most 25 lines that have exactly one importer, which is in the same folder. */
export function fragmentsOf(files: SourceFile[]): SourceFile[] {
  const importers = new Map<string, string[]>()
  for (const { name, imports } of files) {
    for (const to of imports) importers.set(to, [...(importers.get(to) ?? []), name])
  }
  return files.filter(({ name, lines }) => {
    const [only = '', ...others] = importers.get(name) ?? []
    return (
      lines <= fragmentLines &&
      only !== '' &&
      others.length === 0 &&
      path.dirname(only) === path.dirname(name)
    )
  })
}

function report(files: SourceFile[], options: { graph: boolean; assertions: boolean }): string {
  const total = (numbers: number[]) => numbers.reduce((sum, number) => sum + number, 0)
  const lines = files.map((file) => file.lines).toSorted((a, b) => a - b)
  const at = (share: number) => lines[Math.floor((lines.length - 1) * share)] ?? 0
  const assertions = files.flatMap(({ name, assertions: at }) => at.map((line) => `${name}:${line}`))
  const long = files.filter((file) => file.lines > longFileLines)
  const fragments = fragmentsOf(files)
  return [
    `product files: ${files.length}; lines: ${total(lines)}; lines of code: ${total(files.map((file) => file.codeLines))}`,
    `lines per file: median ${at(0.5)}, 95 % ${at(0.95)}, most ${at(1)}`,
    `type assertions: ${assertions.length}${options.assertions ? list(assertions) : ''}`,
    `files over ${longFileLines} lines: ${long.length}${list(long.map(({ name, lines: of }) => `${of} ${name}`))}`,
    `fragments (at most ${fragmentLines} lines, one importer in their folder): ${fragments.length}${list(fragments.map(({ name }) => name))}`,
    `\nFiles per folder (over ${folderMaxFiles} marked *)${list(foldersOf(files))}`,
    `\nPackages: files, lines of code, type assertions, layers (by the folders of the package / by all folders / longest chain of files)`,
    ...packagesOf(files, options.graph),
  ].join('\n')
}

function foldersOf(files: SourceFile[]): string[] {
  return [...Map.groupBy(files, ({ name }) => path.dirname(name))]
    .toSorted(([a, of], [b, others]) => others.length - of.length || (a < b ? -1 : 1))
    .map(
      ([folder, of]) => `${String(of.length).padStart(4)}${of.length > folderMaxFiles ? '*' : ' '} ${folder}`,
    )
}

function packagesOf(files: SourceFile[], withGraph: boolean): string[] {
  return [...Map.groupBy(files, (file) => file.package)].flatMap(([name, of]) => {
    const graph = folderGraph(of, 1)
    const chain = longestChain(graph)
    const deep = longestChain(folderGraph(of))
    const fileChain = longestChain(new Map(of.map((file) => [file.name, new Set(file.imports)])))
    const code = of.reduce((sum, file) => sum + file.codeLines, 0)
    const assertions = of.reduce((sum, file) => sum + file.assertions.length, 0)
    const arrows = [...graph.values()].reduce((sum, to) => sum + to.size, 0)
    return [
      `  ${name}: ${of.length} files, ${code} lines, ${assertions} assertions, layers ${chain.length} / ${deep.length} / ${fileChain.length}, ${arrows} arrows between folders`,
      `      ${chain.join(' → ') || 'no folders'}`,
      ...(chain.join() === deep.join() ? [] : [`      ${deep.join(' → ')}`]),
      ...(withGraph
        ? [...graph].map(([from, to]) => `        ${from} → ${[...to].join(', ') || 'none'}`)
        : []),
    ]
  })
}

function touched(root: string, revision: string): string {
  const range = revision.includes('..') ? revision : `${revision}^..${revision}`
  const names = execFileSync('git', ['diff', '--name-only', '-z', '-M', range], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\0')
    .filter((name) => name !== '')
  const kinds: FileKind[] = ['product', 'tests', 'tools', 'docs', 'config']
  const groups = Map.groupBy(names, kindOf)
  return [
    `${revision}: ${kinds.map((kind) => `${groups.get(kind)?.length ?? 0} ${kind}`).join(', ')}`,
    ...kinds.flatMap((kind) => groups.get(kind)?.map((name) => `  ${kind.padEnd(8)} ${name}`) ?? []),
  ].join('\n')
}

function list(rows: string[]): string {
  return rows.map((row) => `\n  ${row}`).join('')
}

function main(): void {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean' },
      checkout: { type: 'string', default: '.' },
      graph: { type: 'boolean', default: false },
      assertions: { type: 'boolean', default: false },
      touched: { type: 'string', multiple: true },
    },
  })
  if (values.help) return console.log(help)
  if (values.touched) {
    for (const revision of values.touched) console.log(touched(values.checkout, revision))
    return
  }
  console.log(report(readProduct(values.checkout), values))
}

if (import.meta.main) main()
