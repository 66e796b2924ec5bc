import { decisionDetail, decisionList } from '@parley/wire/codecs/answers/operator/records'
import { methodOf } from '@parley/wire/codecs/parley/methods'
import { operatorApi, pathWith, whoSees } from '../../server/operator-api.ts'
import { connect, type ServerOptions, withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { CommandFailed, UsageError } from '../../terminal/faults.ts'
import { type Io, print, printJson } from '../../terminal/io.ts'
import { oneLine } from '../../terminal/printable.ts'
import { uuid } from '../../terminal/uuid.ts'
import { verdictLine } from './decisions.ts'

interface FeedbackOptions extends ServerOptions {
  wrong?: true
  correct?: true
  right?: string
  rating?: string
  text?: string
  json?: true
}

export default function feedbackCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('feedback'))
    .argument('<id>', 'id of a task, or of a decision')
    .option('--wrong', 'the gateway chose the wrong agent')
    .option('--correct', 'the gateway chose the right agent')
    .option('--right <agent>', 'with --wrong: the agent that would have been right')
    .option('--rating <number>', 'rate your own task: 1 (bad) to 5 (good)')
    .option('--text <text>', 'text of the feedback')
    .option('--json', 'print the answer as JSON')
    .addHelpText(
      'after',
      `
--wrong and --correct judge the decision of the gateway, and are recorded with it. Each person has one verdict about a
decision; a later one replaces it. A task names the decision that placed it.
--rating and --text alone rate the result of your own task. From ratings, the gateway learns which agents suit which tasks.
${whoSees}

Exit codes: 0 recorded; 1 failure; 2 incorrect usage.`,
    )
    .members({ rightAgent: '--right', comment: '--text', rating: '--rating', feedback: '--text' })
    .run((id: string, options: FeedbackOptions) => {
      const { wrong, correct, right, rating } = options
      if (wrong && correct) throw new UsageError('Use either --wrong or --correct.')
      if (right !== undefined && !wrong)
        throw new UsageError('--right names the better agent: use it with --wrong.')
      if (!wrong && !correct) return rate(io, id, options)
      if (rating !== undefined)
        throw new UsageError('--rating rates a result: use it without --wrong and --correct.')
      return judge(io, id, options)
    })
}

async function judge(
  io: Io,
  id: string,
  { wrong, right, text, json, ...options }: FeedbackOptions,
): Promise<void> {
  const api = await operatorApi(io, options)
  const decision = id.includes('-')
    ? (await api.send(decisionList, pathWith('/operator/decisions', { task: uuid(id), limit: 1 })))
        .decisions[0]?.id
    : id
  if (decision === undefined)
    throw new CommandFailed(
      `No decision placed the task ${oneLine(id, 40)}: the message named its agent, or the decision is older than 7 days.`,
    )
  const body = {
    verdict: wrong ? 'wrong' : 'right',
    ...(right !== undefined && { right_agent: right }),
    ...(text !== undefined && { comment: text }),
  }
  const path = `/operator/decisions/${encodeURIComponent(decision)}/feedback`
  const answer = await api.send(decisionDetail, path, { method: 'POST', body })
  if (json) printJson(io, answer)
  else for (const verdict of answer.feedback) print(io, verdictLine(verdict))
}

async function rate(io: Io, id: string, { rating, text, json, ...options }: FeedbackOptions): Promise<void> {
  if (rating === undefined && text === undefined)
    throw new UsageError('Say what to record: --rating <1 to 5>, --text, --wrong or --correct.')
  if (rating !== undefined && !/^[1-5]$/.test(rating))
    throw new UsageError('--rating is a whole number from 1 to 5.')
  const server = await connect(io, options)
  const given = {
    task_id: uuid(id),
    feedback: text ?? '',
    ...(rating !== undefined && { rating: Number(rating) }),
  }
  const answer = await server.agent('-').call(methodOf('giveFeedback'), given)
  if (json) printJson(io, answer)
  else print(io, 'The feedback is recorded with the task.\n')
}
