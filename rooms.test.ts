import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { drivers, floors, forTests, parts, readsEnvironment, refusedNames, sizes } from './rooms.ts'

interface File {
  name: string
  text: string
  isTest: boolean
  room: string
  part: string
  /** Files of the house. */
  sees: string[]
  /** Those of them that are there when the types are stripped. */
  runsWith: string[]
  packages: string[]
}

const files = readHouse()
const byName = new Map(files.map((file) => [file.name, file]))
const code = files.filter((file) => !file.isTest)

test('every file stands in a room of the floor plan', () => {
  expect(code.filter((file) => file.room === '').map((file) => file.name)).toEqual([])
})

test('imports go one way: a room sees the floors below its own', () => {
  const floorOf = (file: File) => floors.findIndex((floor) => floor.includes(file.room))
  const seen = imports(code).filter(
    ([from, to]) => from.room !== to.room && from.part === to.part && floorOf(to) >= floorOf(from),
  )
  expect(seen.map(arrow)).toEqual([])
})

test('shared sees neither gateway nor agents nor cli; gateway and agents never see each other; an agent sees the author’s API alone', () => {
  const seen = imports(files).filter(([from, to]) => {
    if (from.part === to.part) return from.part === 'agents' && folderOfAgent(from) !== folderOfAgent(to)
    // Tests stand on the test agent and the test servers as well.
    const allowed = [...(parts[from.part] ?? []), ...(from.isTest ? ['shared/testing', 'shared/client'] : [])]
    return !allowed.some((place) => isIn(to.name, place))
  })
  expect(seen.map(arrow)).toEqual([])
})

test('what is for tests is imported by tests alone', () => {
  const seen = imports(code).filter(
    ([from, to]) =>
      to.room === 'shared/testing' && !['shared/testing', 'bench', 'e2e', 'scripts'].includes(from.room),
  )
  expect([...seen, ...imports(code).filter(([, to]) => to.isTest)].map(arrow)).toEqual([])
})

test('a driver is imported by its adapter alone', () => {
  const seen = code.flatMap((file) =>
    file.packages
      .filter((name) => drivers[name]?.test(file.name) === false)
      .map((name) => `${file.name} → ${name}`),
  )
  expect(seen).toEqual([])
})

test('no import leads back to where it came from', () => {
  expect(cycles()).toEqual([])
})

test('the environment is read in the configuration alone', () => {
  const reads = code.filter((file) =>
    /\bprocess\.env\b|\bimport\.meta\.env\b/.test(withoutComments(file.text)),
  )
  const elsewhere = reads.filter((file) => !readsEnvironment.some((place) => place.test(file.name)))
  expect(elsewhere.map((file) => file.name)).toEqual([])
})

test('no file is named after nothing in particular, and none only passes on the exports of others', () => {
  const barrel = (file: File) =>
    withoutComments(file.text)
      .split(/\n(?=\S)/)
      .every((line) => /^\s*(export\b[^=]*\bfrom\b.*)?$/s.test(line))
  expect(
    files.filter((file) => refusedNames.test(file.name) || barrel(file)).map((file) => file.name),
  ).toEqual([])
})

test('files stay small', () => {
  const lines = code
    .map((file) => ({ name: file.name, lines: file.text.split('\n').length - 1 }))
    .sort((a, b) => a.lines - b.lines)
  const at = (share: number) => lines[Math.floor((lines.length - 1) * share)]?.lines ?? 0
  expect(lines.filter((file) => file.lines > sizes.everyMaxLines)).toEqual([])
  expect(at(sizes.most), '95 % of the files').toBeLessThanOrEqual(sizes.mostMaxLines)
  expect(at(0.5), 'median').toBeLessThanOrEqual(sizes.medianMaxLines)
})

function readHouse(): File[] {
  const root = import.meta.dirname
  const names = globSync(['*.ts', '{shared,gateway,agents,cli,bench,e2e,scripts,tools,docs}/**/*.ts'], {
    cwd: root,
  })
  const known = new Set(names)
  return names.sort().map((name) => {
    const text = readFileSync(path.join(root, name), 'utf8')
    const specifiers = importsOf(text)
    const house = (all: string[]) =>
      all.map((to) => path.posix.join(path.dirname(name), to)).filter((to) => known.has(to))
    return {
      name,
      text,
      isTest: forTests.test(name),
      room: roomOf(name),
      part: name.includes('/') ? name.slice(0, name.indexOf('/')) : 'root',
      sees: house(specifiers),
      runsWith: house(importsOf(text.replace(/^\s*(import|export) type\b/gm, 'type'))),
      packages: specifiers.filter((to) => !to.startsWith('.')),
    }
  })
}

/** Static, re-exporting, bare and dynamic imports of a literal. */
function importsOf(text: string): string[] {
  const pattern =
    /^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*'([^']+)'|^\s*import\s*'([^']+)'|\bimport\(\s*'([^']+)'/gm
  return [...text.matchAll(pattern)].map((match) => match[1] ?? match[2] ?? match[3] ?? '')
}

function roomOf(name: string): string {
  if (!name.includes('/')) return 'root'
  const rooms = floors.flat().filter((room) => isIn(name, room))
  return rooms.sort((a, b) => b.length - a.length)[0] ?? ''
}

function isIn(name: string, place: string): boolean {
  return name === place || name.startsWith(`${place}/`)
}

function folderOfAgent(file: File): string {
  return file.name.split('/')[1] ?? ''
}

function imports(from: File[]): [File, File][] {
  return from.flatMap((file) => file.sees.map((to): [File, File] => [file, byName.get(to) as File]))
}

function arrow([from, to]: [File, File]): string {
  return `${from.name} → ${to.name}`
}

function cycles(): string[] {
  const found: string[] = []
  const done = new Set<string>()
  const walk = (name: string, trail: string[]) => {
    if (trail.includes(name)) found.push([...trail.slice(trail.indexOf(name)), name].join(' → '))
    if (trail.includes(name) || done.has(name)) return
    for (const next of byName.get(name)?.runsWith ?? []) walk(next, [...trail, name])
    done.add(name)
  }
  for (const file of files) walk(file.name, [])
  return found
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
}
