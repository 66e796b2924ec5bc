import { type ScriptedAnswer, scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { expect, test } from 'vitest'
import { runCli } from '../testing.ts'

const [a2a, mcp] = ['application/a2a-agent-card+json', 'application/mcp-server-card+json']
const json = (body: object, status = 200): ScriptedAnswer => ({
  status,
  type: 'application/json',
  body: JSON.stringify(body),
})
const meteo = {
  identifier: 'urn:air:acme.com:agent:meteo',
  displayName: 'Meteo',
  type: a2a,
  url: 'https://acme.com/agents/meteo/.well-known/agent-card.json',
  score: 91,
  source: 'https://acme.com/',
  metadata: { slug: 'meteo', reasons: 'skill “Weather”: it mentions “rain”' },
}
const asMcp = {
  ...meteo,
  identifier: 'urn:air:acme.com:mcp:meteo',
  type: mcp,
  url: 'https://acme.com/agents/meteo/mcp/server-card',
}
const hostile = {
  identifier: 'urn:air:evil.example:x\u001b[2J',
  type: 'text/x\u202e',
  url: 'https://evil.example/$(reboot)',
  score: 7,
}

test('the command prints name, score, type, publisher and address, once for each agent, and the next command', async () => {
  await using gateway = await scriptedAgent({
    'POST /search': () => json({ results: [meteo, asMcp, hostile] }),
  })
  const { code, stdout } = await runCli(['search', 'will it rain', '--token', 't', '--url', gateway.url], {
    tty: true,
  })
  expect(code).toBe(0)
  expect(stdout.split('\n')).toEqual([
    'NAME   SCORE  TYPE      PUBLISHER     ADDRESS',
    'Meteo  91     a2a, mcp  acme.com      https://acme.com/agents/meteo/.well-known/agent-card.json',
    'x      7      text/x    evil.example  https://evil.example/$(reboot)',
    '',
    'Next: npx parley send meteo "<text>"',
    '',
  ])
  expect(gateway.calls.map(({ body, headers }) => [JSON.parse(body), headers.authorization])).toEqual([
    [{ query: { text: 'will it rain' }, pageSize: 20 }, 'Bearer t'],
  ])
})

test.each([
  [meteo, 'npx parley register https://acme.com/agents/meteo'],
  [asMcp, 'npx parley register --mcp https://acme.com/agents/meteo/mcp'],
])('with --at, the command names the command that registers the first result', async (found, next) => {
  await using other = await scriptedAgent({
    'POST /api/search': () =>
      json({
        results: [found],
        referrals: [{ identifier: 'urn:air:b.com:registry:b', url: 'https://b.com/' }],
      }),
  })
  const { code, stdout } = await runCli([
    'search',
    'rain',
    '--at',
    `${other.url}/api`,
    '--type',
    'a2a',
    '--limit',
    '3',
  ])
  expect(code).toBe(0)
  expect(stdout).toContain(`\nNext: ${next}\nAnother registry: --at https://b.com/\n`)
  expect(other.calls.map(({ body, headers }) => [JSON.parse(body), headers.authorization])).toEqual([
    [{ query: { text: 'rain', filter: { type: [a2a] } }, pageSize: 3, federation: 'referrals' }, undefined],
  ])
})

test.each(['/.well-known/ard.json', '/.well-known/ai-catalog.json'])(
  'with --at, the command finds the search that %s names',
  async (path) => {
    await using registry = await scriptedAgent({ 'POST /v1/search': () => json({ results: [meteo] }) })
    const entries = [{ type: mcp }, { type: 'application/ai-registry+json', url: `${registry.url}/v1` }]
    await using site = await scriptedAgent({ [`GET ${path}`]: () => json({ entries }) })
    const { code, stdout } = await runCli(['search', 'rain', '--at', site.url, '--json'])
    expect([code, JSON.parse(stdout)]).toEqual([0, { results: [meteo] }])
  },
)

test('no command is made of an address that a shell would interpret', async () => {
  await using other = await scriptedAgent({
    'POST /search': () => json({ results: [{ ...hostile, type: a2a }] }),
  })
  expect((await runCli(['search', 'x', '--at', other.url])).stdout).not.toContain('Next:')
})

test.each([
  ['no results', () => json({ results: [] }), 'Nothing was found.'],
  ['results that are none', () => json({ results: [{ identifier: 7 }, null, 'x'] }), 'Nothing was found.'],
  ['an answer that is none', () => json([]), 'Nothing was found.'],
])('%s is exit code 1', async (_what, answer, said) => {
  await using other = await scriptedAgent({ 'POST /search': answer })
  const { code, stdout } = await runCli(['search', 'x', '--at', other.url])
  expect([code, stdout.trim()]).toEqual([1, said])
})

test.each<[string, () => ScriptedAnswer, RegExp]>([
  [
    'a refusal',
    () => json({ errorCode: 'INVALID_ARGUMENT', message: 'query.text\u001b[2J is bad' }, 400),
    /HTTP 400: query\.text is bad/,
  ],
  ['no search', () => json({}, 404), /has no search of ARD.*base address of its API/],
  [
    'an endless answer',
    () => ({ status: 200, body: `"${'x'.repeat(5_000_000)}"` }),
    /larger than 4194304 bytes/,
  ],
])('%s of another server is explained', async (_what, answer, message) => {
  await using other = await scriptedAgent({ 'POST /search': answer })
  const { code, stderr } = await runCli(['search', 'x', '--at', other.url])
  expect(code).toBe(1)
  expect(stderr).toMatch(message)
})

test('a refusal of the gateway names the option', async () => {
  await using gateway = await scriptedAgent({
    'POST /search': () =>
      json({ errorCode: 'INVALID_ARGUMENT', message: 'Invalid params: query.text is too long' }, 400),
  })
  const { code, stderr } = await runCli(['search', 'x', '--token', 't', '--url', gateway.url])
  expect([code, stderr]).toEqual([1, 'parley: Invalid params: query.text is too long.\n'])
})

test.each([[['--limit', '0']], [['--limit', '101']], [['--type', 'x']], [['--at', 'ftp://x']]])(
  'the command rejects %s as incorrect usage',
  async (options) => {
    expect((await runCli(['search', 'x', ...options])).code).toBe(2)
  },
)
