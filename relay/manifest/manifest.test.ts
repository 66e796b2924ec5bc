import { describe, expect, test } from 'vitest'
import { expanded, parseManifest, variablesIn } from './manifest.ts'

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
    ['a: &a [1,1]\nb: [*a,*a]\n', 'is not valid YAML'],
  ])('%j', (text, message) => {
    expect(() => parseManifest(text)).toThrow(message)
  })
})
