import { waitingAnswer } from '@parley/wire/codecs/answers/operator/tasks'
import { agoText, operatorApi, pathWith, sayUnread, whoSees } from '../../server/operator-api.ts'
import { type ServerOptions, withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { type Io, print, printJson, say } from '../../terminal/io.ts'
import { oneLine, slugMax } from '../../terminal/printable.ts'
import { wholeNumber } from '../../terminal/whole-number.ts'

interface WaitingOptions extends ServerOptions {
  agent?: string
  owner?: string
  limit: number
  cursor?: string
  json?: true
}

export default function waitingCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('waiting'))
    .option('--agent <agent>', 'only tasks of this agent')
    .option('--owner <client>', 'only tasks of this client')
    .option('--limit <count>', 'number of tasks', wholeNumber(200, 1), 50)
    .option('--cursor <cursor>', 'continue after an earlier page')
    .option('--json', 'print the answer of the gateway as JSON')
    .addHelpText(
      'after',
      `
Lists the tasks that wait for an answer, an approval or a payment, with the question, and the agents that wait for
admission. The owner of a task answers it with: npx parley send <agent> "<answer>" --task <id>
${whoSees}`,
    )
    .run((options: WaitingOptions) => run(io, options))
}

async function run(io: Io, options: WaitingOptions): Promise<void> {
  const { agent, owner, limit, cursor, json } = options
  const api = await operatorApi(io, options)
  const page = await api.send(waitingAnswer, pathWith('/operator/waiting', { agent, owner, limit, cursor }))
  if (json) return printJson(io, page)
  const { tasks, admissions, unread, next_cursor: next } = page
  if (tasks.length + admissions.length === 0) print(io, 'Nothing waits for a person.\n')
  for (const task of tasks) {
    const { question, payment, expires_at: expires } = task
    const facts = [
      `owner ${oneLine(task.owner, 80)}`,
      ...(payment === null
        ? []
        : [
            `${oneLine(payment.amount, 40)} ${oneLine(payment.asset_name, 20)} on ${oneLine(payment.network, 20)}`,
          ]),
      ...(expires === null ? [] : [`until ${expires.slice(0, 19)}Z`]),
    ]
    print(
      io,
      `${oneLine(task.task_id, 36)}  ${oneLine(task.agent, 20)}  ${oneLine(task.state, 20)}  ${agoText(task.since)}\n  ${facts.join(', ')}\n`,
    )
    if (question !== null) print(io, `  ${JSON.stringify(oneLine(question, 300))}\n`)
  }
  for (const { agent: slug, registered_at: at, reason } of admissions) {
    const name = oneLine(slug, slugMax)
    print(
      io,
      `${name}  waits for admission  ${agoText(at)}\n  ${oneLine(reason, 300)}\n  npx parley admit ${name}\n`,
    )
  }
  sayUnread(io, unread)
  if (next !== null) say(io, `More: add --cursor ${next}`)
}
