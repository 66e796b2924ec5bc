import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { AgentClient } from '@parley/client/internal/client'
import { KillableAgent } from '@parley/tools/testing/killable-agent'
import { price, TestWallet } from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'

const source = `export default {
  name: 'paid', description: 'takes test money',
  skills: [{ id: 'a', name: 'a', description: 'a' }],
  executionCost: ${JSON.stringify(price)},
  handle: async () => { await new Promise((done) => setTimeout(done, 20)); return 'done' },
}`

const kills = 5

interface Row {
  id: string
  state: string
  task: string | null
}

/** Reads ledger rows, tasks and money transfers from the database file. */
function readDatabase(dataDir: string) {
  using database = new DatabaseSync(path.join(dataDir, 'agent.db'), { readOnly: true })
  const rows = database
    .prepare('SELECT p.id, p.state, t.state AS task FROM payments p LEFT JOIN tasks t ON t.id = p.task_id')
    .all() as unknown as Row[]
  const moved = database.prepare('SELECT count(*) AS count FROM test_transfers').get()
  const duplicates = database
    .prepare('SELECT count(*) AS count FROM test_transfers GROUP BY nonce_key HAVING count > 1')
    .all()
  return { rows, moved: Number(moved?.['count']), duplicates }
}

test('after kill -9 at any time, every payment is earned or orphaned, and the ledger matches the money that moved', async () => {
  await using agent = await KillableAgent.start(source)
  const token = agent.identityProvider.issue('alice')
  const client = new AgentClient({ url: agent.url, token })
  const wallet = new TestWallet()
  for (let round = 0; round < kills; round += 1) {
    const headers = await Promise.all(Array.from({ length: 6 }, () => wallet.header()))
    const sends = headers.map((header) =>
      client.send('x', undefined, { headers: header }).catch(() => undefined),
    )
    await delay(round * 7)
    await agent.kill()
    await Promise.all(sends)
    await agent.start()
  }
  const isSettled = () => {
    const { rows } = readDatabase(agent.dataDir)
    return rows.every(({ state }) => ['earned', 'orphaned', 'failed'].includes(state))
  }
  await expect.poll(isSettled, { timeout: 100_000, interval: 250 }).toBe(true)
  const { rows, moved, duplicates } = readDatabase(agent.dataDir)
  expect(duplicates).toEqual([])
  const paid = rows.filter(({ state }) => state !== 'failed')
  expect(paid).toHaveLength(moved)
  for (const { state, task } of paid)
    expect(state === 'earned' ? task : null).toBe(state === 'earned' ? 'completed' : null)
})
