import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { dialects } from './dialects.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const codecs = 'shared/wire/codecs/'

/** Names that are spelled like wire fields but are not. */
const allowed: { files: RegExp; names: readonly string[] | 'all'; because: string }[] = [
  {
    files:
      /(^|\/)(sqlite|mongodb|memory|redis|store|stores|database|migration)\/|-store\.ts$|(^|\/)migration\.ts$/,
    names: 'all',
    because: 'columns and fields of stored records',
  },
  {
    files: /./,
    names: ['agent_id'],
    because: 'a label of metrics and a column; on the wire only in the card',
  },
  {
    files: /\/settlement\.ts$/,
    names: ['task_id', 'event_id'],
    because: 'fields that two log lines share',
  },
  {
    files: /\/scaffold\//,
    names: ['input_modes', 'output_modes'],
    because: 'the front matter of a skill file',
  },
  {
    files: /^gateway\/openai\//,
    names: ['task_id', 'context_id', 'created_at', 'input_tokens', 'output_tokens'],
    because: 'fields of answers of the OpenAI-compatible API',
  },
  {
    files: /^shared\/agent\/server\/task-log\.ts$/,
    names: ['task_id', 'context_id'],
    because: 'fields of log lines',
  },
  {
    files: /^shared\/agent\/server\/runner\/trace-run\.ts$/,
    names: ['input_tokens', 'output_tokens'],
    because: 'attributes of spans, from the semantic conventions of OpenTelemetry',
  },
  {
    files: /^gateway\/mcp\//,
    names: [
      'task_id',
      'context_id',
      'artifact_id',
      'mime_type',
      'skill_id',
      'negotiation_id',
      'input_schema',
    ],
    because: 'arguments of the tools of MCP, a metadata key of messages and a field of listed skills',
  },
  {
    files: /(^|\/)(operator|console)[^/]*(\/|\.ts$)/,
    names: 'all',
    because: 'fields of the operator API, which has one form',
  },
]

const snake = /(?<![\w$])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w$])/g
const isProduct = (file: string) =>
  !/\.(test|cases)\.ts$|(^|\/)(testing(\/|\.ts$)|node_modules\/)|\.d\.ts$/.test(file)

const sources = globSync(
  ['shared/**/*.ts', 'gateway/**/*.ts', 'relay/**/*.ts', 'cli/**/*.{ts,mjs}', 'agents/**/*.ts'],
  {
    cwd: root,
  },
)
  .map((file) => file.replaceAll('\\', '/'))
  .filter(isProduct)

/** Returns a file's code without its comments and log fields. */
function codeOf(file: string): string {
  return readFileSync(path.join(root, file), 'utf8')
    .replaceAll(/\/\*.*?\*\//gs, '')
    .replaceAll(/(^|\s)\/\/.*/g, '')
    .replaceAll(/\blog\.(debug|info|warn|error|child)\(\s*\{[^}]*\}/gi, '')
}

function namesIn(code: string): string[] {
  return code.match(snake) ?? []
}

/** The forms of the operator API are the same in every dialect. Their names count only if a dialect has them too. */
const ofOperators = `${codecs}answers/operator/`
const known = new Set(
  sources
    .filter((file) => file.startsWith(codecs) && !file.startsWith(ofOperators))
    .flatMap((file) => namesIn(codeOf(file))),
)

function isAllowed(file: string, name: string): boolean {
  return allowed.some(({ files, names }) => files.test(file) && (names === 'all' || names.includes(name)))
}

test('the codecs supply the names of wire fields and methods', () => {
  expect(known.size).toBeGreaterThan(80)
  expect([...known]).toEqual(
    expect.arrayContaining(['task_id', 'context_id', 'push_notification_config', 'tx_hash']),
  )
})

test('no code outside the codecs contains the name of a wire field', () => {
  const found = sources
    .filter((file) => !file.startsWith(codecs))
    .flatMap((file) => namesIn(codeOf(file)).map((name) => ({ file, name })))
    .filter(({ file, name }) => known.has(name) && !isAllowed(file, name))
  expect(found).toEqual([])
})

test('no code outside the codecs contains a method name', () => {
  const names = new Set(dialects.flatMap((dialect) => [...dialect.methods.keys()]))
  const found = sources
    .filter((file) => !file.startsWith(codecs))
    .flatMap((file) =>
      [...codeOf(file).matchAll(/(['"`])([a-zA-Z/]+)\1/g)].map(([, , name = '']) => ({ file, name })),
    )
    .filter(({ name }) => names.has(name))
  // The tasks extension of MCP has methods with the same names (docs/spec/mcp.md#tasks).
  const ofMcp = new Set(['tasks/get', 'tasks/cancel'])
  expect(
    found.filter(({ file, name }) => !(/^(gateway|relay)\/mcp\//.test(file) && ofMcp.has(name))),
  ).toEqual([])
})

/** Paths, headers, enum values and names of dialects. */
const ofA2a = /(['"`])[^'"`]*(\/a2a\/|a2a-v(?:1|0\.3)\b|a2a-version|a2a-extensions|TASK_STATE_|ROLE_)/i

test('no code outside the codecs contains a path, a header, an enum value or the name of a dialect of A2A', () => {
  const found = sources.filter((file) => !file.startsWith(codecs) && ofA2a.test(codeOf(file)))
  expect(found).toEqual([])
})

test('every allowed exception is needed', () => {
  const unused = allowed.filter(
    ({ files, names }) =>
      !sources.some(
        (file) =>
          files.test(file) &&
          namesIn(codeOf(file)).some((name) => known.has(name) && (names === 'all' || names.includes(name))),
      ),
  )
  expect(unused).toEqual([])
})
