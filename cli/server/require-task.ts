import { type AgentClient, RpcError, type WireTask } from '@parley/client/internal/client'
import { CommandFailed } from '../terminal/faults.ts'

/**
 * Requires that the task exists before a message is sent. An unknown `taskId` would start a new task with that id,
 * and a mistyped `--task` would go unnoticed.
 * @throws CommandFailed if the task does not exist or the token may not read it
 */
export async function requireTask(client: AgentClient, task: string, agent: string): Promise<WireTask> {
  try {
    return await client.get(task, { historyLength: 0 })
  } catch (thrown) {
    if (!(thrown instanceof RpcError)) throw thrown
    if (thrown.code === -32001) {
      const where = agent === '-' ? 'at any agent' : `at ${agent}`
      throw new CommandFailed(
        `There is no task ${task} ${where}. Check the id, or add --new to start a new task with it.`,
      )
    }
    if (thrown.code === -32013)
      throw new CommandFailed(
        `The token may not read tasks (agent:read), so it is unknown whether ${task} exists. Add --new to send without this check.`,
      )
    throw thrown
  }
}
