import { McpServer } from '@modelcontextprotocol/server'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { startMcpServer } from '@parley/tools/testing/mcp-server'
import { expect, test } from 'vitest'
import { disposed } from './mcp-agents.cases.ts'
import { HttpSessions } from './sessions.ts'

async function sessionsOf(era: 'modern' | 'legacy') {
  const build = () => {
    const server = new McpServer({ name: 'notes', version: '1.0.0' }, { capabilities: { tools: {} } })
    server.registerTool('note', { description: 'Notes' }, () => ({ content: [] }))
    return server
  }
  const { url } = disposed(await startMcpServer(build, era))
  return disposed(new HttpSessions({ url, allowed: parseAllowedHosts('127.0.0.1') }))
}

const never = { elicit: () => Promise.reject(new Error('not expected')) }

test('each context has its own session with a legacy server, also after the list of tools was read without a context', async () => {
  const sessions = await sessionsOf('legacy')
  const list = await sessions.open('')
  const alice = await sessions.open('alice')
  const bob = await sessions.open('bob')
  expect(new Set([list, alice, bob]).size).toBe(3)
  expect(await sessions.open('alice')).toBe(alice)
})

test('all contexts share the session with a modern server', async () => {
  const sessions = await sessionsOf('modern')
  expect(await sessions.open('alice')).toBe(await sessions.open('bob'))
})

test('a new session stays open if all others have calls, and the unused ones above the limit are closed', async () => {
  const sessions = await sessionsOf('legacy')
  const used = []
  for (let at = 0; at < 64; at += 1) {
    const session = await sessions.open(`context-${at}`)
    used.push({ session, call: sessions.connect(session, never) })
  }
  const added = await sessions.open('added')
  expect(added.isClosed).toBe(false)
  used[0]?.call[Symbol.dispose]()
  const next = await sessions.open('next')
  expect(next.isClosed).toBe(false)
  expect([added.isClosed, used[0]?.session.isClosed]).toEqual([true, true])
})
