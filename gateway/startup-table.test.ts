import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import type { AgentEntry } from './registry/entry.ts'
import { startupTable } from './startup-table.ts'

const entry = (slug: string, example: string) =>
  ({
    slug,
    url: 'http://127.0.0.1:7401',
    skills: [{ id: 's', examples: [example] }],
  }) as unknown as AgentEntry

const gateway = { gatewayUrl: 'http://127.0.0.1:7400', oauthIssuer: 'http://127.0.0.1:7400/oauth2' }

test('the startup text is one table of addresses that includes the reason why an agent does not run', () => {
  const text = startupTable({
    ...gateway,
    dataDir: '',
    agents: [
      { name: 'assistant', reason: 'needs OPENAI_API_KEY' },
      { name: 'calculator', entry: entry('calculator', '2 + 2') },
    ],
  })
  expect(text).toContain('\ngateway       ready        http://127.0.0.1:7400\n')
  expect(text).toContain('\nMCP server    ready        http://127.0.0.1:7400/mcp\n')
  expect(text).toContain('\nOpenAI API    ready        http://127.0.0.1:7400/v1\n')
  expect(text).toContain('\nassistant     not running  needs OPENAI_API_KEY\n')
  expect(text).toContain(
    '\ncalculator    ready        http://127.0.0.1:7400/agents/calculator/  (own address',
  )
  expect(text.match(/^curl /gm)).toHaveLength(1)
  expect(text).toContain('Bearer $(npx parley token)')
})

test.each(["table's 2 + 2?", 'say "$(touch x)" `id`; \\ done', 'two\nlines'])(
  'the curl command is one line, and a shell passes the message %j unchanged',
  (example) => {
    const text = startupTable({
      ...gateway,
      dataDir: "/home/o'neil/d",
      agents: [{ name: 'a', entry: entry('a', example) }],
    })
    const line = text.split('\n').find((one) => one.startsWith('curl ')) ?? ''
    const script = `curl() { printf '%s\\n' "$@"; }; npx() { printf 'token-of-%s' "$DATA_DIR"; }; ${line}`
    const args = execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trimEnd().split('\n')
    const body = JSON.parse(args.at(-1) ?? '') as { params: { message: { parts: { text: string }[] } } }
    expect(args).toContain('http://127.0.0.1:7400/agents/a/')
    expect(args).toContain("Authorization: Bearer token-of-/home/o'neil/d")
    expect(body.params.message.parts[0]?.text).toBe(example.replace('\n', ' '))
  },
)

test('without a development client or without an agent there is no curl command', () => {
  const agents = [{ name: 'a', entry: entry('a', 'x') }]
  expect(startupTable({ ...gateway, agents })).not.toContain('curl')
  expect(startupTable({ ...gateway, dataDir: '', agents: [] })).not.toContain('curl')
})

test('the texts of an agent cannot control the terminal', () => {
  const text = startupTable({
    ...gateway,
    agents: [{ name: 'a', reason: 'red \u001b[31m\u202e alert\u0007' }],
  })
  // oxlint-disable-next-line no-control-regex -- the table must not contain these characters
  expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/)
})
