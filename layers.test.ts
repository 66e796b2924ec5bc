import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { drivers, layers, publicEntries, readsEnvironment, refusedNames, sizes } from './layers.ts'

interface SourceFile {
  name: string
  text: string
  /** The specifiers of each file's imports. */
  imports: string[]
}

const root = import.meta.dirname
const files: SourceFile[] = globSync('{shared,gateway,relay,agents,cli,e2e,tools}/**/*.ts', { cwd: root })
  .filter((name) => !name.includes('node_modules'))
  .sort()
  .map((name) => {
    const text = readFileSync(path.join(root, name), 'utf8')
    return { name, text, imports: importsOf(text) }
  })
const product = files.filter(({ name }) => !/\.(test|cases|spec|d)\.ts$|\btesting\.ts$/.test(name))

test('a folder imports only from the layers below its own', () => {
  const wrong = product.flatMap(({ name, imports }) =>
    imports
      .filter((to) => to.startsWith('.'))
      .map((to) => path.posix.join(path.dirname(name), to))
      .filter((to) => !isBelow(name, to))
      .map((to) => `${name} → ${to}`),
  )
  expect(wrong).toEqual([])
})

test('an agent imports only npm packages and @parley/agent, as users’ agents do', () => {
  const wrong = product
    .filter(({ name }) => name.startsWith('agents/'))
    .flatMap(({ name, imports }) => imports.map((to) => [name, to] as const))
    .filter(([, to]) => /^(@parley\/(?!agent$)|parley\b|(\.\.\/){2})/.test(to))
  expect(wrong).toEqual([])
})

test('only its adapter imports a driver', () => {
  const wrong = product.flatMap(({ name, imports }) =>
    imports.filter((to) => drivers[to]?.test(name) === false).map((to) => `${name} → ${to}`),
  )
  expect(wrong).toEqual([])
})

test('only the configuration reads the environment', () => {
  const readers = product.filter(({ text }) => /\bprocess\.env\b/.test(withoutComments(text)))
  const wrong = readers.filter(({ name }) => !readsEnvironment.some((place) => place.test(name)))
  expect(wrong.map(({ name }) => name)).toEqual([])
})

test('every file is named after its subject and contains code', () => {
  const isBarrel = ({ name, text }: SourceFile) =>
    !publicEntries.test(name) &&
    withoutComments(text)
      .split(/\n(?=\S)/)
      .every((line) => /^\s*(export\b[^=]*\bfrom\b.*)?$/s.test(line))
  const wrong = files.filter((file) => refusedNames.test(file.name) || isBarrel(file))
  expect(wrong.map(({ name }) => name)).toEqual([])
})

test('files stay small', () => {
  const lines = product
    .map(({ name, text }) => ({ name, lines: text.split('\n').length - 1 }))
    .sort((a, b) => a.lines - b.lines)
  const at = (share: number) => lines[Math.floor((lines.length - 1) * share)]?.lines ?? 0
  expect(lines.filter((file) => file.lines > sizes.everyMaxLines)).toEqual([])
  expect(at(sizes.most), '95 % of the files').toBeLessThanOrEqual(sizes.mostMaxLines)
  expect(at(0.5), 'median').toBeLessThanOrEqual(sizes.medianMaxLines)
})

/** Whether the file `from` may import the file `to`. Files outside the layers may import anything. */
function isBelow(from: string, to: string): boolean {
  const names = Object.keys(layers).filter((name) => [from, to].every((file) => file.startsWith(`${name}/`)))
  return names.every((name) => isBelowIn(name, from, to))
}

function isBelowIn(name: string, from: string, to: string): boolean {
  const [here, there] = [folderIn(name, from), folderIn(name, to)]
  if (here === there || here === '') return true
  const levelOf = (folder: string) => layers[name]?.findIndex((layer) => layer.includes(folder)) ?? -1
  return levelOf(there) !== -1 && levelOf(there) < levelOf(here)
}

/** The longest layer entry that contains the file; empty for the root of the package. */
function folderIn(name: string, file: string): string {
  const inside = file.slice(name.length + 1)
  const folders = layers[name]?.flat().filter((one) => inside === one || inside.startsWith(`${one}/`)) ?? []
  return folders.sort((a, b) => b.length - a.length)[0] ?? ''
}

/** Matches static and dynamic imports, re-exports and side-effect imports with a literal specifier. */
function importsOf(text: string): string[] {
  const pattern =
    /^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*'([^']+)'|^\s*import\s*'([^']+)'|\bimport\(\s*'([^']+)'/gm
  return [...text.matchAll(pattern)].map((match) => match[1] ?? match[2] ?? match[3] ?? '')
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
}
