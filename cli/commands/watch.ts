import path from 'node:path'
import { CliCommand } from '../cli-command.ts'
import { conclude, followEvents, sayInterrupted } from '../follow-task.ts'
import { interruption } from '../interrupt.ts'
import { type Io, printJson } from '../io.ts'
import { explained } from '../no-agent.ts'
import { connect, type ServerOptions, withServerOptions } from '../server-connection.ts'
import { TaskView } from '../task-view.ts'
import { uuid } from '../uuid.ts'

interface WatchOptions extends ServerOptions {
  agent: string
  out?: string
  json?: true
}

export default function watchCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('watch'))
    .argument('<task>', 'id of the task', uuid)
    .option('--agent <agent>', 'name of the agent that has the task; "-": the server at --url itself', '-')
    .option('--out <folder>', 'save the files of the answer there (default: they are only named)')
    .option('--json', 'print every event as one line of JSON')
    .addHelpText(
      'after',
      `
Tells all that happened to the task so far, then what happens, until it ends or pauses. Ctrl-C leaves; the task goes on.

Exit codes: 0 the task completed, or you left; 1 it failed, was rejected or canceled, or waits for an answer;
2 wrong use.`,
    )
    .run((task: string, options: WatchOptions) => watch(io, task, options))
}

async function watch(io: Io, task: string, options: WatchOptions): Promise<number> {
  const client = (await connect(io, options)).agent(options.agent)
  using leave = interruption()
  const view = new TaskView(io, options.out === undefined ? undefined : path.resolve(io.cwd, options.out))
  const events = client.resubscribe(task, 0, { signal: leave.signal })
  try {
    if (options.json) {
      const standing = await followEvents(events, (event) => printJson(io, event))
      return standing.status.state === 'completed' ? 0 : 1
    }
    const standing = await followEvents(events, (event) => view.event(event))
    view.finish()
    return conclude(io, standing, options.agent)
  } catch (thrown) {
    view.finish()
    sayInterrupted(io, explained(thrown, options.agent, 'with --agent'), undefined, options.agent)
    return 0
  }
}
