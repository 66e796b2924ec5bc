import { defaultWeights } from '@parley/negotiation/score/weights'
import { queryOut, readNegotiation, weightsOut } from '@parley/wire/codecs/parley/negotiation'
import { InvalidArgumentError } from 'commander'
import { minScoreOf } from '../server/environment.ts'
import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { printNeeds } from '../terminal/needs-view.ts'
import { printRanking } from '../terminal/ranking-view.ts'

interface NegotiateOptions extends ServerOptions {
  details?: string
  input?: string[]
  output?: string[]
  maxLatency?: number
  maxCost?: string
  tool?: string[]
  withoutTool?: string[]
  minScore?: number
  limit: number
  weights?: Record<string, number>
  json?: true
}

/** The weights that the gateway uses for messages that name no agent. */
const weightsDefault = weightsOut(defaultWeights)
const weightNames = Object.keys(weightsDefault)

export default function negotiateCommand(io: Io): CliCommand {
  const collected = (text: string, before: string[] = []) => [...before, text]
  return withServerOptions(new CliCommand('negotiate'))
    .argument('<text>', 'summary of the task')
    .option('--details <text>', 'further description of the task')
    .option('--input <type>', 'MIME type that the agent must accept (repeatable)', collected)
    .option('--output <type>', 'MIME type that you accept (repeatable)', collected)
    .option('--max-latency <ms>', 'maximum latency', wholeNumber)
    .option('--max-cost <amount>', 'maximum cost, as a decimal number')
    .option('--tool <name>', 'tool that the agent must have (repeatable)', collected)
    .option('--without-tool <name>', 'tool that the agent must not have (repeatable)', collected)
    .option(
      '--min-score <number>',
      'minimum score of a suitable agent, 0 to 1 (default: ROUTE_MIN_SCORE, as for a message; with --weights: 0)',
      share,
    )
    .option(
      '--weights <list>',
      `for example ${weightNames[0]}=0.8,load=0.2 (default: as for a message)`,
      weights,
    )
    .option('--limit <count>', 'number of candidates to show', wholeNumber, 10)
    .option('--json', 'print the gateway’s answer as JSON')
    .addHelpText('after', '\nExit codes: 0 an agent can do it; 1 none can; 2 incorrect usage.')
    .members({
      taskSummary: '<text>',
      taskDetails: '--details',
      inputMimeTypes: '--input',
      outputMimeTypes: '--output',
      maxLatencyMs: '--max-latency',
      maxCostAmount: '--max-cost',
      requiredTools: '--tool',
      forbiddenTools: '--without-tool',
    })
    .run((text: string, options: NegotiateOptions) => negotiate(io, text, options))
}

async function negotiate(io: Io, text: string, options: NegotiateOptions): Promise<number> {
  const server = await connect(io, options)
  const { body } = await server.send('POST', '/agent/negotiation', {
    ...queryOut({
      taskSummary: text,
      weights: defaultWeights,
      limit: options.limit,
      taskDetails: options.details,
      inputMimeTypes: options.input,
      outputMimeTypes: options.output,
      maxLatencyMs: options.maxLatency,
      maxCostAmount: options.maxCost,
      requiredTools: options.tool,
      forbiddenTools: options.withoutTool,
      // The default threshold applies only to the default weights.
      minScore: options.minScore ?? (options.weights === undefined ? minScoreOf(io) : undefined),
    }),
    ...(options.weights !== undefined && { weights: options.weights }),
  })
  const answer = readNegotiation(body)
  if (options.json) printJson(io, body)
  else {
    printRanking(io, answer)
    printNeeds(io, answer)
    if (answer.canHandle !== true) print(io, 'No agent can handle this task.\n')
  }
  return answer.canHandle === true ? 0 : 1
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It is not a whole number.')
  return Number(text)
}

function share(text: string): number {
  const value = /^(0|1|0?\.\d+|[01]\.\d+)$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= 0 && value <= 1)) throw new InvalidArgumentError('It is not a number from 0 to 1.')
  return value
}

function weights(text: string): Record<string, number> {
  const pairs = text.split(',').map((pair) => pair.split('=', 2))
  for (const [name = ''] of pairs)
    if (!Object.hasOwn(weightsDefault, name))
      throw new InvalidArgumentError(`Weights are ${weightNames.join(', ')}.`)
  return Object.fromEntries(pairs.map(([name, value = '']) => [name, share(value)]))
}
