import { canceledTask } from '@parley/wire/codecs/answers/operator/tasks'
import { operatorApi, pathWith, whoSees } from '../../server/operator-api.ts'
import { type ServerOptions, withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { type Io, print, printJson } from '../../terminal/io.ts'
import { oneLine } from '../../terminal/printable.ts'
import { uuid } from '../../terminal/uuid.ts'

interface CancelOptions extends ServerOptions {
  agent?: string
  json?: true
}

export default function cancelCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('cancel'))
    .argument('<task>', 'id of the task', uuid)
    .option('--agent <agent>', 'name of the agent that has the task (default: the gateway finds it)')
    .option('--json', 'print the answer of the gateway as JSON')
    .addHelpText(
      'after',
      `
Cancels a task of any owner. Its agent also cancels the tasks that it created at other agents.
${whoSees}

Exit codes: 0 the task is canceled; 1 it has already ended or was not found; 2 incorrect usage.`,
    )
    .run(async (task: string, options: CancelOptions) => {
      const api = await operatorApi(io, options)
      const path = pathWith(`/operator/tasks/${task}/cancel`, { agent: options.agent })
      const canceled = await api.send(canceledTask, path, { method: 'POST' })
      if (options.json) printJson(io, canceled)
      else
        print(
          io,
          `Task ${oneLine(canceled.task_id, 60)} at ${oneLine(canceled.agent, 63)} is ${oneLine(canceled.state, 40)}.\n`,
        )
    })
}
