import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.join(import.meta.dirname, '..')

/** Folders that contain no text of this project. */
const skipped = new Set(['node_modules', 'dist', 'data', 'results', 'vectors', '.git', '.parley'])
const files = globSync(['*', '**/*'], {
  cwd: root,
  exclude: (name) => skipped.has(path.basename(name)),
}).filter(
  (name) =>
    /(\.(ts|mjs|js|md|py|sh|ya?ml)|(^|\/)Dockerfile)$/.test(name) && !name.endsWith('citations.test.ts'),
)

const textOf = (name: string) => readFileSync(path.join(root, name), 'utf8')

test('every citation of a document resolves to a file and a heading in this repository', () => {
  expect(files.length).toBeGreaterThan(100)
  expect(files.flatMap((name) => citationFaults(name, textOf(name)))).toEqual([])
})

test('all relative links in Markdown files resolve, including their anchors', () => {
  const markdown = files.filter((name) => name.endsWith('.md'))
  expect(markdown).toContain('README.md')
  expect(markdown.flatMap((name) => linkFaults(name, textOf(name)))).toEqual([])
})

test('every source file that a Markdown file names exists', () => {
  const markdown = files.filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md')
  expect(markdown.flatMap((name) => pathFaults(name, textOf(name)))).toEqual([])
})

test.each([
  ['a heading that is missing', '// Ends the task (spec/tasks.md#cancellation).'],
  ['a file that is missing', '// Ends the task (docs/spec/task.md#transitions).'],
  ['a section of the contract without its heading', '// Ends the task (spec/tasks.md).'],
  ['a decision that is missing', '// Ends the task (docs/decisions/0999-cancel.md).'],
  ['a number without a decision', '// Ends the task (record 999).'],
  ['a guide that is missing', '// Ends the task (docs/cancel.md#tasks).'],
  ['a title instead of a file', '/** Specification, "Errors": an envelope. */'],
  ['a title in parentheses', '// An envelope (specification, "Errors").'],
  ['a document outside of the repository', '// An envelope (design gaps, "JSON-RPC").'],
  ['a file outside of the repository', '// An envelope (decisions.md).'],
])('a citation of %s is a fault', (_what, text) => {
  expect(citationFaults('shared/example.ts', text)).toHaveLength(1)
})

test.each([
  ['a heading', '// Ends the task (spec/tasks.md#transitions).'],
  ['a decision by file', '// Signed (docs/decisions/0005-signatures.md).'],
  ['a decision by number', '// Signed (record 5).'],
  ['an external standard', '// Introspection (RFC 7662, section 2.2), terms of x402 and EIP-3009.'],
])('a citation of %s resolves', (_what, text) => {
  expect(citationFaults('shared/example.ts', text)).toEqual([])
})

test.each([
  ['a file that is missing', '[x](missing.md)'],
  ['a heading that is missing', '[x](docs/spec/tasks.md#missing)'],
  ['a heading of the same file that is missing', '[x](#missing)'],
])('a link to %s is a fault', (_what, text) => {
  expect(linkFaults('README.md', text)).toHaveLength(1)
})

test.each([
  ['with its path', '`shared/missing.ts`'],
  ['by its name', '`missing-file.ts`'],
])('a missing source file, %s, is a fault', (_what, text) => {
  expect(pathFaults('README.md', text)).toHaveLength(1)
})

/** Matches documents cited by a name other than their path in this repository, which readers cannot open. */
const unresolvable = [
  /\bdesign gaps\b/gi,
  /\b[Ss]pecification, ["“`A-Z]/g,
  /\(specification\)/g,
  /\b[Dd]ecisions, ["“]/g,
  /\b[Ii]nterfaces, ["“`]/g,
  /(?<![\w/-])(decisions|interfaces|agent-service|toolchain)\.md\b/g,
]

function citationFaults(name: string, text: string): string[] {
  const at = (found: RegExpMatchArray) =>
    `${name}:${text.slice(0, found.index).split('\n').length} ${found[0]}`
  const outside = unresolvable.flatMap((form) => [...text.matchAll(form)])
  const sections = text.matchAll(/(?<![\w./-])(?:docs\/)?(spec\/[\w-]+\.md)(?:#([\w-]+))?/g)
  const guides = text.matchAll(/(?<![\w./-])docs\/([\w-]+\.md)(?:#([\w-]+))?/g)
  const decisions = text.matchAll(/(?<![\w./-])(?:docs\/)?decisions\/(\d{4})([\w-]*)(?:\.md)?/g)
  const numbers = text.matchAll(/\b(?:[Dd]ecision record|[Dd]ecision|[Rr]ecord) \[?(\d{1,3})\b/g)
  const faults = [
    ...outside,
    ...[...sections].filter(([, file, anchor]) => !resolves(file, anchor, !name.endsWith('.md'))),
    ...[...guides].filter(([, file, anchor]) => !resolves(file, anchor)),
    ...[...decisions].filter(([, number, rest]) => !isDecision(`${number}${rest}`)),
    ...[...numbers].filter(([, number = '']) => !isDecision(number.padStart(4, '0'))),
  ]
  return faults.map(at)
}

/** @param needsAnchor whether a citation must name a heading in addition to the file */
function resolves(file = '', anchor?: string, needsAnchor = false): boolean {
  const target = path.join('docs', file)
  if (!existsSync(path.join(root, target))) return false
  if (anchor === undefined) return !needsAnchor
  return anchorsOf(target).has(anchor)
}

function isDecision(prefix: string): boolean {
  return files.some((name) => name.startsWith(`docs/decisions/${prefix}`))
}

function linkFaults(name: string, text: string): string[] {
  const prose = withoutCode(text)
  const links = [...prose.matchAll(/\[[^\]]*\]\(([^()\s]+)\)/g)].map(([, target = '']) => target)
  return links.filter((target) => !isLink(name, target)).map((target) => `${name} → ${target}`)
}

function isLink(from: string, target: string): boolean {
  if (/^[a-z][a-z\d+.-]*:/i.test(target)) return true
  const [file = '', anchor] = target.split('#')
  const found = file === '' ? from : path.posix.join(path.posix.dirname(from), decodeURIComponent(file))
  if (!existsSync(path.join(root, found))) return false
  return anchor === undefined || !found.endsWith('.md') || anchorsOf(found).has(anchor)
}

/** The named source files that do not exist. A name without a folder matches a file in any folder. */
function pathFaults(name: string, text: string): string[] {
  const named = [...text.matchAll(/`((?:[\w-]+\/)*[\w.-]+\.ts)`/g)].map(([, found = '']) => found)
  const exists = (found: string) =>
    found.includes('/')
      ? !topFolders.has(found.split('/', 1)[0] ?? '') || files.includes(found)
      : files.some((known) => path.posix.basename(known) === found)
  return named.filter((found) => !exists(found)).map((found) => `${name} → ${found}`)
}

/** The top folders of source files. Paths below other folders are examples. */
const topFolders = new Set(['shared', 'gateway', 'cli', 'e2e', 'tools', 'docs'])

const anchors = new Map<string, Set<string>>()

/** The anchors that GitHub generates for the headings. */
function anchorsOf(name: string): Set<string> {
  const known = anchors.get(name)
  if (known !== undefined) return known
  const found = new Set<string>()
  for (const [, heading = ''] of textOf(name)
    .replace(/^```[\s\S]*?^```/gm, '')
    .matchAll(/^#{1,6} +(.+)$/gm)) {
    const plain = heading
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-')
    let anchor = plain
    for (let number = 1; found.has(anchor); number += 1) anchor = `${plain}-${number}`
    found.add(anchor)
  }
  anchors.set(name, found)
  return found
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '``')
}
