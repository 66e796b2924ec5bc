import { decisionList, verdictAnswer } from '@parley/wire/codecs/answers/operator/records'
import { methodOf } from '@parley/wire/codecs/parley/methods'
import type { z } from 'zod'
import { operatorApi, pathWith, whoSees } from '../../server/operator-api.ts'
import { connect, type ServerOptions, withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { CommandFailed, UsageError } from '../../terminal/faults.ts'
import { type Io, print, printJson, say } from '../../terminal/io.ts'
import { oneLine, slugMax } from '../../terminal/printable.ts'
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
--wrong and --correct judge the decision of the gateway and are recorded with it. The gateway learns from them: the message
becomes an example against the chosen agent and for the one of --right, or with --correct for the chosen agent. Each person
has one verdict about a decision; a later one replaces it and its examples. A task names the decision that placed it.
--rating and --text alone rate the result of your own task. The gateway also learns from ratings which agents suit which
tasks. npx parley learned <agent> shows what it has learned.
${whoSees}

Exit codes: 0 recorded; 1 failure; 2 incorrect usage.`,
    )
    .members({
      right_agent: '--right',
      rightAgent: '--right',
      comment: '--text',
      rating: '--rating',
      feedback: '--text',
    })
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
  const answer = await api.send(verdictAnswer, path, { method: 'POST', body })
  if (json) return printJson(io, answer)
  for (const verdict of answer.feedback) print(io, verdictLine(verdict))
  say(io, learnedText(answer, right))
}

/** Whether the gateway learned from the verdict, and the next step. */
function learnedText({ not_learned: why, chosen }: z.output<typeof verdictAnswer>, right?: string): string {
  if (why === null) {
    const agents = [...new Set([chosen, right])].filter((slug) => typeof slug === 'string')
    return `The gateway learned from it: npx parley learned ${oneLine(agents[0] ?? '<agent>', slugMax)}`
  }
  return `The verdict is recorded, but nothing was learned: ${reasons[why]}`
}

const reasons = {
  learning_off: 'the gateway runs with ROUTE_LEARNING=no.',
  no_words:
    'the gateway has no words of the message, because its context was cleared or the decision is of an earlier version.',
  no_agent: 'the chosen agent is not registered any more. Name the right one with --right <agent>.',
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
