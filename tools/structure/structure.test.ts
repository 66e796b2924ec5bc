import { expect, test } from 'vitest'
import { longestChain } from './layers.ts'
import { type FileKind, kindOf, parse, type SourceFile } from './source-files.ts'
import { folderGraph, fragmentsOf } from './structure.ts'

test.each<[string, FileKind]>([
  ['gateway/app.ts', 'product'],
  ['shared/engine/store/store.ts', 'product'],
  ['shared/engine/store/store.cases.ts', 'tests'],
  ['gateway/testing.ts', 'tests'],
  ['shared/testing/test-agent.ts', 'tests'],
  ['tools/prose/prose.ts', 'tools'],
  ['e2e/sign-in.spec.ts', 'tests'],
  ['docs/errors.md', 'docs'],
  ['layers.ts', 'config'],
  ['gateway/package.json', 'config'],
])('%s is %s', (name, kind) => {
  expect(kindOf(name)).toBe(kind)
})

test('type assertions are counted, but as const, satisfies and renamed imports are not', () => {
  const source = `import { a as b } from './a.ts'
export { b as c }
const text = 'x as string' as const
const one = b as unknown as string // as number
const two = { one } satisfies object
`
  expect(parsed(source).assertions).toEqual([4, 4])
})

test('only lines with more than comments and white space count as code', () => {
  expect(parsed('/**\n * Text.\n */\nf() // why\n\n// note\ng(`// not\n\na comment`)\n')).toMatchObject({
    lines: 9,
    codeLines: 3,
  })
})

test('finds static and dynamic imports, type imports and re-exports', () => {
  const source = `import './a.ts'
import type { B } from './b.ts'
export * from './c.ts'
export type D = import('./d.ts').D
await import('./e.ts')
new URL('./f.ts', import.meta.url)
`
  expect(parsed(source).imports).toEqual(['./a.ts', './b.ts', './c.ts', './d.ts', './e.ts'])
})

test('layers are the longest chain of folders, and a cycle is one layer', () => {
  const files = [
    file('p/app.ts', ['p/a/a.ts']),
    file('p/a/a.ts', ['p/b/b.ts', 'p/c/c.ts', 'p/app.ts']),
    file('p/b/b.ts', ['p/c/deep/c.ts']),
    file('p/c/c.ts', ['p/b/b.ts', 'p/c/deep/c.ts']),
    file('p/c/deep/c.ts', ['p/d/d.ts', 'q/d.ts']),
    file('p/d/d.ts', []),
  ]
  expect(longestChain(folderGraph(files, 1))).toEqual(['a', 'b + c', 'd'])
  expect(longestChain(folderGraph(files))).toEqual(['a', 'c', 'b', 'c/deep', 'd'])
})

test('a fragment is short and has one importer, in its own folder', () => {
  const files = [
    file('p/a.ts', ['p/long.ts', 'p/short.ts', 'p/shared.ts', 'p/b/other.ts'], 100),
    file('p/b.ts', ['p/shared.ts'], 100),
    file('p/long.ts', [], 26),
    file('p/short.ts', [], 25),
    file('p/shared.ts', [], 5),
    file('p/b/other.ts', [], 5),
  ]
  expect(fragmentsOf(files).map(({ name }) => name)).toEqual(['p/short.ts'])
})

function parsed(source: string) {
  return parse('p/a.ts', source, (_, specifier) => specifier)
}

function file(name: string, imports: string[], lines = 50): SourceFile {
  return { name, package: 'p', lines, codeLines: lines, imports, assertions: [] }
}
