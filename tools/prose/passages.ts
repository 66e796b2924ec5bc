import path from 'node:path'
import { parseSync, Visitor } from 'rolldown/utils'

export type Kind = 'comments' | 'texts' | 'titles' | 'markdown'

/** One sentence written for people, and the source offset of each of its characters. */
export interface Sentence {
  kind: Kind
  text: string
  offsets: number[]
}

interface Passage {
  kind: Kind
  start: number
  /** The text, as long as its source, with markup and code blanked out. */
  text: string
}

const javascript = new Set(['.ts', '.tsx', '.mts', '.cts', '.js', '.mjs', '.cjs'])
const hashComments = new Set(['.py', '.sh', '.yml', '.yaml', '.conf', '.example', ''])
const testFile = /\.(test|spec|cases)\.tsx?$/
const titleFunctions = new Set(['test', 'it', 'describe', 'suite'])
const directive = /^[\s*/]*(?:(?:oxlint|eslint|biome|prettier)-|@ts-|@vitest|[#@]__|<reference|!)/
const sql =
  /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|PRAGMA|BEGIN|COMMIT|FROM|WHERE|AND|ON CONFLICT)\s/

/** The file types that `sentencesOf` reads. */
export function isReadable(file: string): boolean {
  const extension = path.extname(file)
  if (extension === '') return path.basename(file) === 'Dockerfile'
  return javascript.has(extension) || hashComments.has(extension) || extension === '.md'
}

/** Returns the comments, human-readable strings and test titles of a source file, or the prose of a Markdown file. */
export function sentencesOf(file: string, source: string): Sentence[] {
  const extension = path.extname(file)
  if (extension === '.md') return sentences({ kind: 'markdown', start: 0, text: blankMarkdown(source) })
  const passages = javascript.has(extension) ? readScript(file, source) : readHashCommented(source)
  return passages.flatMap(sentences)
}

/** Number of words outside code spans and URLs. */
export function countWords(text: string): number {
  return text.match(/[A-Za-z][A-Za-z'’-]*/g)?.length ?? 0
}

function readScript(file: string, source: string): Passage[] {
  const { program, comments, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`)
  const isTest = testFile.test(file)
  const passages = scriptComments(source, comments)
  const ignored = new Set<number>()
  const text = (node: { start: number; end: number }, quasis: { start: number; end: number }[] = [node]) => {
    if (ignored.has(node.start)) return
    const raw = keepOnly(source, node, quasis)
    if (isSentence(raw)) passages.push({ kind: 'texts', start: node.start, text: raw })
  }
  new Visitor({
    ImportDeclaration: ({ source: from }) => void ignored.add(from.start),
    ImportExpression: ({ source: from }) => void ignored.add(from.start),
    TaggedTemplateExpression(node) {
      if (node.tag.type === 'Identifier' && node.tag.name === 'sql') ignored.add(node.quasi.start)
    },
    CallExpression(node) {
      const title = node.arguments[0]
      if (!isTest || title === undefined || !titleFunctions.has(rootName(node.callee))) return
      const isTemplate = title.type === 'TemplateLiteral'
      if (!isTemplate && !(title.type === 'Literal' && typeof title.value === 'string')) return
      const raw = keepOnly(source, title, isTemplate ? textParts(source, title.quasis) : [title])
      passages.push({ kind: 'titles', start: title.start, text: raw })
    },
    Literal(node) {
      if (!isTest && typeof node.value === 'string') text(node)
    },
    TemplateLiteral(node) {
      if (!isTest) text(node, textParts(source, node.quasis))
    },
    JSXText(node) {
      if (!isTest) text(node)
    },
  }).visit(program)
  return passages
}

/** Consecutive line comments are one passage. */
function scriptComments(
  source: string,
  comments: { type: 'Line' | 'Block'; value: string; start: number; end: number }[],
): Passage[] {
  const passages: Passage[] = []
  let end = -1
  for (const comment of comments) {
    if (directive.test(comment.value)) continue
    const text = blankMarkup(
      source
        .slice(comment.start, comment.end)
        .replace(/^\/[/*]+|\*+\/$/g, blank)
        .replace(/^[ \t]*\*/gm, blank),
    )
    const last = passages.at(-1)
    const gap = source.slice(end, comment.start)
    if (comment.type === 'Line' && last && /^\s*$/.test(gap) && !gap.includes('\n\n')) {
      last.text += gap + text
    } else {
      passages.push({ kind: 'comments', start: comment.start, text })
    }
    end = comment.end
  }
  return passages
}

/** Reads `#` comments in Python, shell and YAML files, and triple-quoted strings in Python. */
function readHashCommented(source: string): Passage[] {
  const tokens =
    /("""|''')[\s\S]*?\1|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?:(?<=^|\s)#[^\n]*(?:\n[ \t]*(?=#))?)+/gm
  return [...source.matchAll(tokens)].flatMap((match): Passage[] => {
    const raw = match[0]
    if (raw.startsWith('#!')) return []
    if (raw.startsWith('#')) {
      return [{ kind: 'comments', start: match.index, text: blankMarkup(raw.replace(/^[ \t]*#+/gm, blank)) }]
    }
    if (match[1]) return [{ kind: 'comments', start: match.index, text: blankMarkup(raw) }]
    const text = blankMarkup(raw)
    return isSentence(text) ? [{ kind: 'texts', start: match.index, text }] : []
  })
}

function rootName(callee: object): string {
  let node: object | undefined = callee
  while (node) {
    if ('name' in node) return String(node.name)
    const next: unknown = 'object' in node ? node.object : 'callee' in node ? node.callee : undefined
    node = typeof next === 'object' && next !== null ? next : undefined
  }
  return ''
}

/** The parser's range of a template part includes the delimiters in TypeScript files, but not in JavaScript files. */
function textParts(source: string, quasis: { start: number; end: number }[]) {
  return quasis.map(({ start, end }) => {
    if (/[`}]/.test(source.charAt(start - 1))) return { start, end }
    return { start: start + 1, end: end - (source.charAt(end - 1) === '`' ? 1 : 2) }
  })
}

/** Keeps the parts of a template outside its placeholders and replaces each placeholder with one letter. */
function keepOnly(
  source: string,
  node: { start: number; end: number },
  parts: { start: number; end: number }[],
) {
  let at = node.start
  let text = ''
  for (const part of parts) {
    const gap = source.slice(at, part.start)
    text += gap.includes('{') ? `X${' '.repeat(gap.length - 1)}` : blank(gap)
    text += source.slice(part.start, part.end)
    at = part.end
  }
  text += blank(source.slice(at, node.end))
  return blankMarkup(text.replace(/\\(?:u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|.)/g, blank)).replace(
    /^['"`]|['"`]$/g,
    ' ',
  )
}

function isSentence(text: string): boolean {
  if (sql.test(text.trim())) return false
  const tokens = text.trim().split(/\s+/)
  const words = tokens.filter((token) => /^[("“]?[A-Za-z][a-z’'-]*[.,;:!?)"”]*$/.test(token))
  return words.length >= 3 && words.length >= tokens.length * 0.6
}

/** Blanks out code spans, tags and URLs, which are not prose. */
function blankMarkup(text: string): string {
  return text
    .replace(/(```|~~~)[\s\S]*?(?:\1|$)/g, blank)
    .replace(/`[^`\n]+`/g, (code) => `X${' '.repeat(code.length - 1)}`)
    .replace(/https?:\/\/[^\s)>]+/g, blank)
    .replace(/\{@link ([^}]*)\}/g, blank)
    .replace(/@(?:param|throws|returns|template|typeParam|see|example|default|deprecated)\b/g, (tag) =>
      '\n\n'.padEnd(tag.length),
    )
    .replace(/<\/?[a-zA-Z][^<>\n]*>/g, blank)
}

function blankMarkdown(text: string): string {
  return blankMarkup(
    text
      .replace(/<!--[\s\S]*?-->/g, blank)
      .replace(/\]\([^)\s]*\)/g, blank)
      .replace(
        /^\s*(?:#+|[-*+]|\d+\.|>)\s/gm,
        (marker) => `\n\n${' '.repeat(Math.max(0, marker.length - 2))}`,
      )
      .replace(/\|/g, '\f')
      .replace(/\*\*|__/g, blank),
  )
}

function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ')
}

/** Splits a passage at the ends of sentences, at blank lines and at table cells, and collapses white space. */
function sentences({ kind, start, text }: Passage): Sentence[] {
  const found: Sentence[] = []
  let sentence: Sentence = { kind, text: '', offsets: [] }
  const finish = () => {
    if (/[A-Za-z]/.test(sentence.text)) found.push({ ...sentence, text: sentence.text.trimEnd() })
    sentence = { kind, text: '', offsets: [] }
  }
  for (const { 0: token, index } of text.matchAll(/\s+|\S+/g)) {
    if (token.trim() !== '') {
      for (let i = 0; i < token.length; i++) sentence.offsets.push(start + index + i)
      sentence.text += token
    } else if (/\n[ \t]*\n|\f/.test(token) || /[.!?][)"”’']?$/.test(sentence.text)) {
      finish()
    } else if (sentence.text !== '') {
      sentence.text += ' '
      sentence.offsets.push(start + index)
    }
  }
  finish()
  return found
}
