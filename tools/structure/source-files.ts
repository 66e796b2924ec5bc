import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseSync, Visitor } from 'rolldown/utils'
import { trackedFiles } from '../tracked-files.ts'

export type FileKind = 'product' | 'tests' | 'tools' | 'docs' | 'config'

export interface SourceFile {
  name: string
  /** The nearest folder with a `package.json` or, if there is none, the top folder or a folder in `agents`. */
  package: string
  lines: number
  /** Number of lines that contain more than comments and white space. */
  codeLines: number
  /** Paths of the imported source files of this checkout. */
  imports: string[]
  /** Line numbers of `x as Type` and `<Type>x`, except `as const`. */
  assertions: number[]
}

/** Classifies a file by its name and top folder only, so that the layout does not matter. */
export function kindOf(name: string): FileKind {
  if (/\.(test|spec|cases)\.tsx?$/.test(name)) return 'tests'
  if (/^(tools|bench|e2e|scripts)\//.test(name)) return 'tools'
  if (/(^|\/)testing(\/|\.ts$)/.test(name)) return 'tests'
  if (/^(docs|examples)\/|\.md$/.test(name)) return 'docs'
  return name.includes('/') && /\.(ts|tsx)$/.test(name) ? 'product' : 'config'
}

/**
 * The product code of a checkout, parsed.
 * @throws Error if the folder is not the top of a git working tree or a file cannot be parsed
 */
export function readProduct(root: string): SourceFile[] {
  const tracked = trackedFiles(root)
  if (!tracked) throw new Error(`${root} is not the top folder of a git working tree`)
  const names = tracked.filter((name) => kindOf(name) === 'product')
  const resolve = resolverOf(root, new Set(tracked))
  return names.map((name) => {
    const source = readFileSync(path.join(root, name), 'utf8')
    return { name, package: packageOf(root, name), ...parse(name, source, resolve) }
  })
}

export function parse(
  name: string,
  source: string,
  resolve: (from: string, specifier: string) => string | undefined,
): Pick<SourceFile, 'lines' | 'codeLines' | 'imports' | 'assertions'> {
  const { program, comments, errors } = parseSync(name, source)
  if (errors.length > 0) throw new Error(`${name} cannot be parsed: ${errors[0]?.message}`)
  const specifiers = new Set<string>()
  const offsets: number[] = []
  const addSpecifier = ({ source: from }: { source: { value: string } | null }) => {
    if (from) specifiers.add(from.value)
  }
  new Visitor({
    ImportDeclaration: addSpecifier,
    ExportNamedDeclaration: addSpecifier,
    ExportAllDeclaration: addSpecifier,
    TSImportType: addSpecifier,
    ImportExpression({ source: from }) {
      if (from.type === 'Literal' && typeof from.value === 'string') specifiers.add(from.value)
    },
    TSAsExpression({ typeAnnotation, start }) {
      if (source.slice(typeAnnotation.start, typeAnnotation.end) !== 'const') offsets.push(start)
    },
    TSTypeAssertion: ({ start }) => void offsets.push(start),
  }).visit(program)
  let code = source
  for (const { start, end } of comments) {
    code = code.slice(0, start) + code.slice(start, end).replace(/[^\n]/g, ' ') + code.slice(end)
  }
  return {
    lines: source.split('\n').length - 1,
    codeLines: code.split('\n').filter((line) => line.trim() !== '').length,
    imports: [...specifiers].flatMap((specifier) => resolve(name, specifier) ?? []),
    assertions: offsets.map((offset) => source.slice(0, offset).split('\n').length),
  }
}

function packageOf(root: string, name: string): string {
  for (let folder = path.dirname(name); folder !== '.'; folder = path.dirname(folder)) {
    if (existsSync(path.join(root, folder, 'package.json'))) return folder
  }
  const [top = '', second = ''] = name.split('/')
  return top === 'agents' ? `${top}/${second}` : top
}

/** Resolves relative paths, and packages of this checkout through the `exports` in their `package.json`. */
function resolverOf(root: string, files: Set<string>) {
  const packages = [...files]
    .filter((name) => path.basename(name) === 'package.json')
    .map((name) => ({ folder: path.dirname(name), ...readPackage(path.join(root, name)) }))
  return (from: string, specifier: string): string | undefined => {
    if (specifier.startsWith('.')) {
      const name = path.posix.join(path.dirname(from), specifier)
      return files.has(name) ? name : undefined
    }
    const found = packages.find(({ name }) => specifier === name || specifier.startsWith(`${name}/`))
    if (!found) return undefined
    const subpath = `.${specifier.slice(found.name.length)}`
    for (const [pattern, target] of Object.entries(found.exports)) {
      const [before = '', after] = pattern.split('*')
      const matches =
        after === undefined ? subpath === pattern : subpath.startsWith(before) && subpath.endsWith(after)
      if (!matches) continue
      const middle = after === undefined ? '' : subpath.slice(before.length, subpath.length - after.length)
      const name = path.posix.join(found.folder, target.replaceAll('*', middle))
      if (files.has(name)) return name
    }
    return undefined
  }
}

function readPackage(file: string): { name: string; exports: Record<string, string> } {
  const content: { name?: string; exports?: Record<string, unknown> } = JSON.parse(readFileSync(file, 'utf8'))
  const exports = Object.entries(content.exports ?? {}).flatMap(([subpath, target]) =>
    typeof target === 'string' ? [[subpath, target]] : [],
  )
  return { name: content.name ?? '', exports: Object.fromEntries(exports) }
}
