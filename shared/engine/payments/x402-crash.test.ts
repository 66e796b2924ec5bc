import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { A2aPayer } from '@parley/tools/testing/a2a-payer'
import { KillableAgent } from '@parley/tools/testing/killable-agent'
import { price } from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'

const source = `export default {
  name: 'paid', description: 'takes test money',
  skills: [{ id: 'a', name: 'a', description: 'a' }],
  executionCost: ${JSON.stringify(price)},
  handle: async ({ text }) => { await new Promise((done) => setTimeout(done, 20)); return text },
}`

const [rounds, tasksPerRound] = [4, 5]

function transfersIn(dataDir: string): number {
  using database = new DatabaseSync(path.join(dataDir, 'agent.db'), { readOnly: true })
  return Number(database.prepare('SELECT count(*) AS count FROM test_transfers').get()?.['count'])
}

test('after kill -9 between payment and commit, the repeated message runs its task, and each task is charged once', async () => {
  await using agent = await KillableAgent.start(source)
  const alice = new A2aPayer(agent, agent.identityProvider.issue('alice'), '1.0')
  const unpaid = await Promise.all(
    Array.from({ length: rounds * tasksPerRound }, async (_, at) => {
      const { task } = await alice.send(`work ${at}`)
      return { id: task.id, at, payment: await alice.payment() }
    }),
  )
  for (let round = 0; round < rounds; round += 1) {
    const some = unpaid.slice(round * tasksPerRound, (round + 1) * tasksPerRound)
    const sends = some.map(({ id, payment }) => alice.pay(id, payment).catch(() => undefined))
    await delay(5 + round * 8)
    await agent.kill()
    await Promise.all(sends)
    await agent.start()
  }
  const textOf = async ({ id, payment }: (typeof unpaid)[number]) => {
    const paid = await alice.pay(id, payment)
    return paid.task.artifacts[0]?.parts[0]?.text
  }
  for (const one of unpaid)
    await expect.poll(() => textOf(one), { timeout: 60_000, interval: 500 }).toBe(`work ${one.at}`)
  expect(transfersIn(agent.dataDir)).toBe(unpaid.length)
}, 180_000)
