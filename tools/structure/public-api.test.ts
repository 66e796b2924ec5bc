import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseSync } from 'rolldown/utils'
import { expect, test } from 'vitest'

const root = path.join(import.meta.dirname, '../..')

/** Entry points of the published packages. docs/spec documents the fields of wire shapes. */
const entries = [
  { entry: '@parley/agent', file: 'shared/agent/author/define-agent.ts', hasWireShapes: false },
  { entry: '@parley/agent/testing', file: 'shared/agent/testing.ts', hasWireShapes: false },
  { entry: '@parley/client', file: 'shared/client/signed-fetch.ts', hasWireShapes: true },
]

test.each(entries)('every export of $entry has TSDoc', ({ file, hasWireShapes }) => {
  const missing = undocumentedIn(file)
  expect(hasWireShapes ? missing.filter((name) => !isField(name)) : missing).toEqual([])
})

/** Whether the name is a field of an interface. */
const isField = (name: string) => /\.ts: \w+\./.test(name)

type Program = ReturnType<typeof parseSync>['program']
type Statement = Program['body'][number]

interface Module {
  name: string
  source: string
  body: Statement[]
  isDocumented: (start: number) => boolean
}

function readModule(name: string): Module {
  const source = readFileSync(path.join(root, name), 'utf8')
  const { program, comments } = parseSync(name, source)
  const ends = comments
    .filter(({ type, value }) => type === 'Block' && value.startsWith('*'))
    .map(({ end }) => end)
  const isDocumented = (start: number) =>
    ends.some((end) => end <= start && /^\s*$/.test(source.slice(end, start)))
  return { name, source, body: program.body, isDocumented }
}

/** Lists exported names, and members of exported interfaces and classes, that have no TSDoc comment. */
function undocumentedIn(name: string, only?: ReadonlySet<string>): string[] {
  const module = readModule(name)
  return module.body.flatMap((statement) => {
    if (statement.type === 'ExportAllDeclaration') return undocumentedIn(fileOf(name, statement.source.value))
    if (statement.type !== 'ExportNamedDeclaration') return []
    const { declaration, source, specifiers } = statement
    if (source !== null) {
      const names = specifiers.map(({ local }) => ('name' in local ? local.name : local.value))
      return undocumentedIn(fileOf(name, source.value), new Set(names))
    }
    if (declaration === null || !('id' in declaration) || declaration.id?.type !== 'Identifier') return []
    const exported = declaration.id.name
    if (only !== undefined && !only.has(exported)) return []
    const own = module.isDocumented(statement.start) ? [] : [`${name}: ${exported}`]
    return [...own, ...undocumentedMembers(module, exported, declaration)]
  })
}

function undocumentedMembers(
  module: Module,
  exported: string,
  declaration: { type: string; body?: unknown },
): string[] {
  if (declaration.type !== 'TSInterfaceDeclaration' && declaration.type !== 'ClassDeclaration') return []
  return membersOf(declaration.body)
    .filter((member) => isPublic(member) && !module.isDocumented(member.start))
    .map(
      (member) =>
        `${module.name}: ${exported}.${module.source.slice(member.start, member.end).split('\n')[0]}`,
    )
}

interface Member {
  type: string
  start: number
  end: number
  computed?: boolean
  kind?: string
  accessibility?: string | null
  key?: { type: string }
}

function membersOf(body: unknown): Member[] {
  const { body: members }: { body: Member[] } = Object(body)
  return members
}

/** Constructors, symbol keys and private members need no comment. */
function isPublic({ computed, kind, accessibility, key }: Member): boolean {
  return (
    computed !== true &&
    kind !== 'constructor' &&
    accessibility !== 'private' &&
    key?.type !== 'PrivateIdentifier'
  )
}

/** Resolves a relative import, or an import from another package of this repository, to its file. */
function fileOf(from: string, specifier: string): string {
  const name = specifier.startsWith('.')
    ? path.posix.join(path.dirname(from), specifier)
    : `${specifier.replace('@parley/', 'shared/').replace('/internal/', '/')}.ts`
  if (!existsSync(path.join(root, name)))
    throw new Error(`${from} exports from ${specifier}, which is not found`)
  return name
}
