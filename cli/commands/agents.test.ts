import { type ScriptedAnswer, scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { expect, test } from 'vitest'
import { runCli } from '../testing.ts'

const calculator = {
  slug: 'calculator',
  status: 'ready',
  admitted: true,
  skills: [{ id: 'calculate' }, { id: 'convert-units' }],
  url: 'http://127.0.0.1:7400/agents/calculator/',
}
const stranger = {
  slug: 'stranger',
  status: 'unreachable',
  admitted: false,
  quarantined: true,
  skills: [{ id: 'x\u001b[2J\n' }],
  url: 'http://b.example/',
}
const listing = (...agents: object[]): ScriptedAnswer => ({
  status: 200,
  type: 'application/json',
  body: JSON.stringify({ agents, total: agents.length }),
})

test('the command lists the agents as a table and neutralizes hostile names', async () => {
  await using server = await scriptedAgent({ 'GET /registry/agents': () => listing(calculator, stranger) })
  const { code, stdout } = await runCli(['agents', '--url', server.url])
  expect(code).toBe(0)
  expect(stdout.split('\n')).toEqual([
    'AGENT       STATUS                                  SKILLS                    ADDRESS',
    'calculator  ready                                   calculate, convert-units  http://127.0.0.1:7400/agents/calculator/',
    'stranger    unreachable, not admitted, quarantined  x                         http://b.example/',
    '',
  ])
})

test('--json prints the response of the registry, and filters become query parameters', async () => {
  await using server = await scriptedAgent({ 'GET /registry/agents': () => listing(calculator) })
  const argv = ['agents', '--json', '--query', 'add up', '--tag', 'math', '--url', server.url]
  expect(JSON.parse((await runCli(argv)).stdout)).toEqual({ agents: [calculator], total: 1 })
  expect(server.calls[0]?.path).toBe('/registry/agents?q=add+up&tag=math&limit=200')
})

test('the command reads a long list page by page', async () => {
  const page = (slug: string, cursor?: string) => ({
    status: 200,
    type: 'application/json',
    body: JSON.stringify({ agents: [{ slug }], ...(cursor === undefined ? {} : { next_cursor: cursor }) }),
  })
  await using server = await scriptedAgent({
    'GET /registry/agents': ({ earlier }) => (earlier === 0 ? page('one', 'c1') : page('two')),
  })
  const { stdout } = await runCli(['agents', '--json', '--url', server.url])
  expect(JSON.parse(stdout)).toEqual({ agents: [{ slug: 'one' }, { slug: 'two' }], total: 2 })
  expect(server.calls[1]?.path).toContain('cursor=c1')
})

test('the command reports that there are no agents', async () => {
  await using server = await scriptedAgent({ 'GET /registry/agents': () => listing() })
  expect(await runCli(['agents', '--url', server.url])).toEqual({
    code: 0,
    stdout: 'No agents.\n',
    stderr: '',
  })
})

test.each<[string, ScriptedAnswer]>([
  ['an error', { status: 503, body: '{"error": {"code": -32042, "message": "Temporarily unavailable"}}' }],
  ['a page', { status: 200, body: '<html>' }],
  ['another page', { status: 502, body: 'Bad Gateway' }],
])('%s instead of a list causes exit code 1', async (_, answer) => {
  await using server = await scriptedAgent({ 'GET /registry/agents': () => answer })
  const said = await runCli(['agents', '--url', server.url])
  expect(said).toMatchObject({ code: 1, stdout: '' })
  expect(said.stderr).toMatch(/^parley: .+\n$/)
})
