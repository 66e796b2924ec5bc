import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { signCard } from '@parley/kit/did/card-signature'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { type ForeignAgent, startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { startScriptedMcpServer } from '@parley/tools/testing/mcp-server'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

const folder = temporaryFolder()
let agent: ForeignAgent

beforeEach(async () => {
  agent = await startForeignAgent((_request, reply) => reply.error(-32_001, 'Task not found'))
})
afterEach(() => agent[Symbol.asyncDispose]())

const skills = [{ id: 'greet', name: 'Greet', description: 'Greets', tags: [] }]
const v1 = () => ({
  name: 'Greeter',
  description: 'Greets people',
  version: '1.0.0',
  supportedInterfaces: [{ url: `${agent.url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true },
  skills,
})
const old = (protocolVersion?: string) => ({
  name: 'Greeter',
  description: 'Greets people',
  version: '1.0.0',
  url: `${agent.url}/`,
  ...(protocolVersion !== undefined && { protocolVersion }),
  defaultInputModes: ['text'],
  capabilities: {},
  skills,
})
const check = (...more: string[]) => runCli(['check', agent.url, ...more], { cwd: folder.path })

test.each([
  ['1.0', v1, /^ok +interface +A2A 1\.0, JSON-RPC at \S+\/rpc, streaming$/m],
  ['0.3', () => old('0.3.0'), /^ok +interface +A2A 0\.3, JSON-RPC at \S+, without streaming/m],
  ['0.2', () => old('0.2.5'), /^ok +interface +A2A 0\.2\.5, called as A2A 0\.3, JSON-RPC/m],
  ['without a version', () => old(), /^ok +interface +A2A 0\.3, JSON-RPC/m],
])('parley check accepts an A2A agent of another vendor, %s', async (_version, card, line) => {
  agent.card = card()
  const { code, stdout } = await check()
  expect(stdout).toMatch(line)
  expect(stdout).toMatch(/^– +addresses .*REGISTRY_ALLOWED_HOSTS/m)
  expect(stdout).toMatch(/^ok +credential +the card requires none$/m)
  expect(stdout).toMatch(/^– +signature +The card has no signature\. The agent can be registered, but not/m)
  expect(stdout).toMatch(/^ok +call/m)
  expect(code).toBe(0)
  expect(agent.requests[0]?.headers['a2a-version']).toBe(card === v1 ? '1.0' : undefined)
})

test('parley check finds a card at the second path, and the address may contain the path', async () => {
  agent.card = v1()
  agent.cardPaths = ['/.well-known/agent-card.json']
  expect((await check()).stdout).toContain('an A2A card at /.well-known/agent-card.json')
  const given = await runCli(['check', `${agent.url}/.well-known/agent-card.json`], { cwd: folder.path })
  expect(given.code).toBe(0)
})

test('parley check shows the scheme, and tries a credential that the user gives', async () => {
  const security = { securitySchemes: { k: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } } } }
  agent.card = { ...v1(), ...security, securityRequirements: [{ schemes: { k: { list: [] } } }] }
  agent.script = ({ headers }, reply) => {
    if (headers['x-key'] === 'KEY') reply.error(-32_001, 'Task not found')
    else reply.response.writeHead(401).end('{}')
  }
  const without = await check()
  expect(without.stdout).toMatch(/^ok +credential +apiKey: npx parley admit <agent> --credential @<file/m)
  expect(without.stdout).toMatch(/^– +call +The agent requires a credential \(401\)/m)
  expect((await check('--token', 'KEY')).stdout).toMatch(/^ok +call/m)
  expect(await check('--token', 'OTHER')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('The agent refuses the credential of --token (401).'),
  })
})

test.each([
  [
    'interface',
    { supportedInterfaces: [{ url: 'a.test:1', protocolBinding: 'GRPC', protocolVersion: '1.0' }] },
    'The agent offers GRPC only',
  ],
  ['credential', { securitySchemes: { m: { type: 'mutualTLS' } }, security: [{ m: [] }] }, 'not supported'],
  ['skills', { skills: [] }, 'The card lists no skills'],
  [
    'interface',
    { supportedInterfaces: [{ url: 'http://a.test/', protocolBinding: 'JSONRPC', protocolVersion: '2.0' }] },
    'The agent offers JSONRPC of A2A 2.0 only',
  ],
  ['interface', { supportedInterfaces: [] }, 'The card lists no interface. It has to offer JSONRPC'],
  [
    'addresses',
    {
      supportedInterfaces: [
        { url: 'http://a:b@a.test/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      ],
    },
    'http://…@a.test/: The URL must not contain a user name',
  ],
  ['card', { name: '' }, 'The registry refuses the card: name: '],
])('parley check states the fault of the %s', async (what, more, sentence) => {
  agent.card = { ...v1(), ...more }
  const { code, stdout } = await check()
  expect(stdout).toMatch(new RegExp(`^FIX +${what} `, 'm'))
  expect(stdout).toContain(sentence)
  expect(stdout).not.toContain('a:b@')
  expect(code).toBe(1)
})

test('parley check states where it looked for a card, and nothing else, if there is none', async () => {
  const server = createServer((_request, response) => {
    response.writeHead(302, { location: 'https://elsewhere.test/' }).end()
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { code, stdout } = await runCli(['check', urlOf(server)], { cwd: folder.path })
  expect(stdout.trim().split('\n')).toEqual([
    expect.stringMatching(/^ok +reachable/),
    expect.stringMatching(/^FIX +card +There is no card: .*agent-card\.json returns HTTP 302 to https:\/\/e/),
  ])
  expect(stdout).toContain('Redirects are not followed')
  expect(code).toBe(1)
})

test('parley check names each private host of the card', async () => {
  const url = 'http://10.0.0.1/rpc'
  agent.card = { ...v1(), supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }
  const { stdout } = await check()
  expect(stdout).toMatch(/^– +addresses .*loopback.* A gateway in production/m)
  expect(stdout).toMatch(/^– +addresses .*10\.0\.0\.1\/rpc: .* list 10\.0\.0\.1 in REGISTRY_ALLOWED_HOSTS/m)
})

test('parley check names an invalid signature', async () => {
  const key = keyPairFromSeed(Buffer.alloc(32, 1))
  const kid = 'did:web:127.0.0.1%3A1#1'
  agent.card = signCard(v1(), [{ alg: 'EdDSA', kid, sign: (bytes) => key.sign(bytes) }])
  expect((await check()).stdout).toMatch(/^– +signature +The key of the signature cannot be found/m)
})

function urlOf(server: Server): string {
  const address = server.address()
  return typeof address === 'object' && address !== null ? `http://127.0.0.1:${address.port}` : ''
}

test('parley check --mcp shows the tools of an MCP server, and calls none', async () => {
  const tools = [{ name: 'add', title: 'Add numbers', inputSchema: { type: 'object' } }, { name: 'sub' }]
  await using server = await startScriptedMcpServer((request, reply) => {
    if (request.method === 'tools/list') reply.result({ tools })
  })
  const { code, stdout } = await runCli(['check', '--mcp', server.url], { cwd: folder.path })
  expect(stdout).toMatch(/^ok +server +scripted 1\.0\.0, MCP 2025-11-25$/m)
  expect(stdout).toMatch(/^ok +tools +2: add \(Add numbers\), sub$/m)
  expect(code).toBe(0)
  expect(server.requests.map(({ method }) => method)).not.toContain('tools/call')
})

test('parley check --mcp suggests what to do about an address without an MCP server', async () => {
  const { code, stdout } = await runCli(['check', '--mcp', `${agent.url}/other`], { cwd: folder.path })
  expect(stdout).toMatch(/^FIX +server .*Is this the endpoint of an MCP server\?/m)
  expect(stdout).toContain('For an A2A agent, leave out --mcp.')
  expect(code).toBe(1)
})

test('parley check --mcp states why a server cannot be reached', async () => {
  const { stdout } = await runCli(['check', '--mcp', 'http://127.0.0.1:9/mcp'], {
    cwd: folder.path,
  })
  expect(stdout).toMatch(/^FIX +server +The server could not be reached: The host could not be reached\./m)
})
