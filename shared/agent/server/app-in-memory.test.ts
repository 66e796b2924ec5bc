import { mkdtemp, readdir, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { testAgent } from '../testing.ts'

test('an agent with the in-memory store completes tasks, lists them, stores feedback and writes no database', async () => {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'parley-memory-'))
  onTestFinished(() => rm(dataDir, { recursive: true }))
  const lines: string[] = []
  const options = {
    dataDir,
    store: 'memory' as const,
    env: { LOG_LEVEL: 'warn' },
    logTo: { write: (line: string) => void lines.push(line) },
  }
  await using agent = await testAgent({ handle: ({ text }) => text.toUpperCase() }, options)
  const alice = agent.caller('alice')
  const done = await alice.sendAndWait('hello')
  expect(done.status.state).toBe('completed')
  expect(await alice.call('tasks/list', {})).toMatchObject([{ id: done.id }])
  expect(await alice.call('contexts/list', {})).toMatchObject([{ task_ids: [done.id], task_count: 1 }])
  await alice.call('tasks/feedback', { task_id: done.id, feedback: 'good', rating: 5 })
  await expect(agent.caller('bob').get(done.id)).rejects.toMatchObject({ code: -32001 })
  await alice.call('contexts/clear', { context_id: done.context_id })
  await expect(alice.get(done.id)).rejects.toMatchObject({ code: -32001 })
  const health = await (await fetch(`${agent.url}/health`)).json()
  expect(health).toMatchObject({ runtime: { storage_backend: 'memory' } })
  expect((await readdir(dataDir)).filter((file) => file.includes('.db'))).toEqual([])
  expect(lines.join('')).toContain('a restart loses all of them')
})
