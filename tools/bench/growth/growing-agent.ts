import { randomInt } from 'node:crypto'
import path from 'node:path'
import { AgentUnderTest, callOf } from '../support/agent-under-test.ts'
import { bringIntoMemory } from '../support/file-in-memory.ts'
import { type Figures, measure } from '../support/measure.ts'
import { inRounds, type Subject } from '../support/rounds.ts'
import { ownersCount, taskIdOf } from '../support/sqlite-fill.ts'

/** The folder of an agent with a filled store. */
export interface FilledAgent {
  name: string
  dataDir: string
  filled: number
}

export const fileOf = ({ dataDir }: FilledAgent) => path.join(dataDir, 'agent.db')

const differentTasks = 20_000

/** Measures `tasks/get` over HTTP, with token introspection, for the tasks of each agent. */
export async function requestFigures(agents: FilledAgent[]): Promise<Record<string, Figures>> {
  const { medians } = await inRounds(
    Object.fromEntries(agents.map((agent): [string, Subject] => [agent.name, asked(agent)])),
  )
  return medians
}

const asked =
  (filledAgent: FilledAgent): Subject =>
  async (generator) => {
    const { dataDir, filled } = filledAgent
    await using agent = await AgentUnderTest.start({ env: { DATA_DIR: dataDir } })
    const requests = Array.from({ length: differentTasks }, () => {
      const number = randomInt(filled)
      // The token of the task's owner, as chosen by `fillTasks`.
      const owner = Math.floor(number / 4) % ownersCount
      return callOf(owner, 'tasks/get', { task_id: taskIdOf(number) })
    })
    bringIntoMemory(fileOf(filledAgent))
    return (await measure(generator, agent.server, { requests, mustHold: '"state":"completed"' })).figures
  }
