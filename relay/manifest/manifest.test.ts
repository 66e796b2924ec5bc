import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { makeLog } from '@parley/kit/process/log'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { expanded, parseManifest, variablesIn } from './manifest.ts'
import { loadManifestAgent } from './manifest-agent.ts'

const minimal = `
name: Files
description: Reads files
handler:
  mcp: { command: node, args: [server.js, "\${ROOT}"], env: { KEY: "\${API_KEY}", MODE: fast } }
`

test('a manifest names the program, the tools that are offered, and the settings', () => {
  const read = parseManifest(`${minimal}
skills:
  - { tool: read_file, id: read, examples: [Show me the notes] }
settings: { allow: [processes] }
`)
  expect(read).toMatchObject({
    version: '1.0.0',
    handler: { mcp: { command: 'node', env: { MODE: 'fast' } } },
    skills: [{ tool: 'read_file', id: 'read' }],
    settings: { allow: ['processes'] },
  })
  expect(variablesIn(read)).toEqual(['ROOT', 'API_KEY'])
})

test('a variable that is not set is named', () => {
  expect(expanded('a ${B} c', { B: 'b' })).toBe('a b c')
  expect(() => expanded('${NONE}', {})).toThrow('the variable NONE is not set')
})

describe('a fault is described with its field and what to do', () => {
  test.each([
    ['name: [', 'agent.yaml is not valid YAML'],
    ['[]', 'agent.yaml Invalid input: expected object'],
    [
      'description: x\nhandler: {mcp: {url: "http://x.test/mcp"}}',
      'agent.yaml: name is missing. It must be a string.',
    ],
    [
      `${minimal}skill: []`,
      'agent.yaml has the unknown field "skill". docs/guides/agent-manifest.md lists the fields.',
    ],
    [
      'name: a\ndescription: b\nhandler: {http: {url: x}}',
      'agent.yaml: handler has the kind "http", which this version does not support. Use mcp.',
    ],
    [
      'name: a\ndescription: b\nhandler: {mcp: {}}',
      'agent.yaml: handler.mcp must have either command (with args, env, cwd) or url (with token, header).',
    ],
    [
      'name: a\ndescription: b\nhandler: {mcp: {url: "ftp://x"}}',
      'agent.yaml: handler.mcp.url must be an http or https address.',
    ],
    [
      `${minimal}skills: [{tool: a}, {tool: b, id: a}]`,
      'the ID a appears twice. Give one of the skills another id',
    ],
    [
      `${minimal}skills: [{tool: a, id: "a b"}]`,
      'agent.yaml: skills.0.id may contain only letters, digits, _, . and -.',
    ],
    [
      'name: a\ndescription: b\nhandler: {mcp: {comand: node, args: [x]}}',
      'agent.yaml: handler.mcp has the unknown field "comand". docs/guides/agent-manifest.md lists the fields.',
    ],
    ['name: a\ndescription: b', 'agent.yaml: handler is missing. It must be an object.'],
    ['a: &a [1,1]\nb: [*a,*a]\n', 'is not valid YAML'],
  ])('%j', (text, message) => {
    expect(() => parseManifest(text)).toThrow(message)
  })

  test('a handler of another kind is the only fault of its field', () => {
    expect(() => parseManifest('name: a\ndescription: b\nhandler: {http: {url: x}}')).not.toThrow('missing')
  })
})

test.each([
  [
    '{ command: no-such-program }',
    'The server could not be started: spawn no-such-program ENOENT. Check that the program of handler.mcp.command is installed',
  ],
  ['{ command: "false" }', 'What it wrote is in the log'],
  [
    '{ url: "http://127.0.0.1:9/mcp" }',
    'Check that handler.mcp.url is the endpoint of a running MCP server.',
  ],
])('a server %s that cannot be used is reported with what to check', async (mcp, advice) => {
  await expect(load(mcp)).rejects.toThrow(advice)
})

test.each([
  ['', 'requires a credential. Set handler.mcp.token'],
  ['token: wrong', 'does not accept the credential. Check handler.mcp.token'],
])('a server that requires a credential is reported with the field for it (%j)', async (token, advice) => {
  const server = createServer((_request, response) => void response.writeHead(401).end())
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = z.object({ port: z.number() }).parse(server.address())
  await expect(load(`{ url: "http://127.0.0.1:${port}/mcp", ${token} }`)).rejects.toThrow(advice)
})

async function load(mcp: string) {
  const folder = await mkdtemp(path.join(tmpdir(), 'manifest-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const text = `name: a\ndescription: b\nhandler:\n  mcp: ${mcp}\n`
  await writeFile(path.join(folder, 'agent.yaml'), text)
  const parts = { log: makeLog({ level: 'silent', name: 'a' }), variables: process.env }
  return loadManifestAgent(folder, parts)
}
