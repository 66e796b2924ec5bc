import { forgottenAnswer, learnedAnswer } from '@parley/wire/codecs/answers/operator/records'
import { whoMay } from '../../server/operate.ts'
import { operatorApi, pathWith } from '../../server/operator-api.ts'
import { type ServerOptions, slugOf, withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { UsageError } from '../../terminal/faults.ts'
import { type Io, print, printJson } from '../../terminal/io.ts'
import { counted, printLearned } from '../../terminal/learned-view.ts'
import { oneLine } from '../../terminal/printable.ts'
import { confirm } from '../../terminal/question.ts'

interface LearnedOptions extends ServerOptions {
  forget?: true
  caller?: string
  yes?: true
  json?: true
}

export default function learnedCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('learned'))
    .argument('<agent>', 'name of the agent (npx parley agents)')
    .option('--forget', 'remove all examples of the agent, at every gateway of a shared store')
    .option('--caller <hash>', 'with --forget: only the examples of this caller, named as in the list')
    .option('--yes', 'with --forget: do not ask for a confirmation')
    .option('--json', 'print the answer of the gateway as JSON')
    .addHelpText(
      'after',
      `
Shows the examples from which the gateway has learned about an agent: ratings, failed tasks, verdicts (npx parley
feedback) and repeated use. The gateway stores the stems of their words and a sentence vector, never the texts. Callers
are shown as hashes. Positive examples raise the score only when there are enough of them, from enough callers; negative
ones lower it under the same conditions.
${whoMay}

Exit codes: 0 done; 1 failure, no such agent, or not confirmed; 2 incorrect usage.`,
    )
    .members({ caller: '--caller' })
    .run((agent: string, options: LearnedOptions) => {
      const { forget: forgets, caller, yes } = options
      if (!forgets && (caller !== undefined || yes))
        throw new UsageError('--caller and --yes belong to --forget.')
      return forgets ? forget(io, slugOf(agent), options) : show(io, slugOf(agent), options)
    })
}

async function forget(
  io: Io,
  agent: string,
  { caller, yes, json, ...options }: LearnedOptions,
): Promise<void> {
  const whose = caller === undefined ? 'everything' : `the examples of the caller ${oneLine(caller, 22)}`
  if (!yes)
    await confirm(io, `Forget ${whose} that was learned about ${agent}? This cannot be undone.`, {
      refused: 'Nothing was forgotten.',
      unattended: `This removes ${whose} that was learned about ${agent}. Add --yes to confirm it.`,
    })
  const api = await operatorApi(io, options)
  const path = pathWith(`/operator/agents/${agent}/learned`, { caller })
  const answer = await api.send(forgottenAnswer, path, { method: 'DELETE' })
  if (json) printJson(io, answer)
  else print(io, `Forgotten: ${counted(answer.forgotten, 'example')} of ${agent}.\n`)
}

async function show(io: Io, agent: string, { json, ...options }: LearnedOptions): Promise<void> {
  const api = await operatorApi(io, options)
  const learned = await api.send(learnedAnswer, `/operator/agents/${agent}/learned`)
  if (json) printJson(io, learned)
  else printLearned(io, learned)
}
