import { usualWeights } from '@parley/negotiation/score/usual'
import { queryOut, readNegotiation, weightsOut } from '@parley/wire/codecs/parley/negotiation'
import { InvalidArgumentError } from 'commander'
import { minScoreOf } from '../server/environment.ts'
import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
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

/** As the gateway asks for messages that name no agent. */
const weightsDefault = weightsOut(usualWeights)
const weightNames = Object.keys(weightsDefault)

export default function negotiateCommand(io: Io): CliCommand {
  const collected = (text: string, before: string[] = []) => [...before, text]
  return withServerOptions(new CliCommand('negotiate'))
    .argument('<text>', 'what shall be done')
    .option('--details <text>', 'more about it')
    .option('--input <type>', 'a MIME type that the agent must read (may be repeated)', collected)
    .option('--output <type>', 'a MIME type that you take (may be repeated)', collected)
    .option('--max-latency <ms>', 'how long it may take', wholeNumber)
    .option('--max-cost <amount>', 'what it may cost, as a decimal number')
    .option('--tool <name>', 'a tool that the agent must have (may be repeated)', collected)
    .option('--without-tool <name>', 'a tool that the agent must not have (may be repeated)', collected)
    .option(
      '--min-score <number>',
      'score below which an agent would not get it, 0 to 1 (default: ROUTE_MIN_SCORE, as for a message; with --weights: 0)',
      share,
    )
    .option(
      '--weights <list>',
      `for example ${weightNames[0]}=0.8,load=0.2 (default: as for a message)`,
      weights,
    )
    .option('--limit <count>', 'candidates shown', wholeNumber, 10)
    .option('--json', 'print the gateway’s answer as JSON')
    .addHelpText('after', '\nExit codes: 0 an agent can do it; 1 none can; 2 wrong use.')
    .run((text: string, options: NegotiateOptions) => negotiate(io, text, options))
}

async function negotiate(io: Io, text: string, options: NegotiateOptions): Promise<number> {
  const server = await connect(io, options)
  const { body } = await server.send('POST', '/agent/negotiation', {
    ...queryOut({
      taskSummary: text,
      weights: usualWeights,
      limit: options.limit,
      taskDetails: options.details,
      inputMimeTypes: options.input,
      outputMimeTypes: options.output,
      maxLatencyMs: options.maxLatency,
      maxCostAmount: options.maxCost,
      requiredTools: options.tool,
      forbiddenTools: options.withoutTool,
      // The threshold is one of the usual weights.
      minScore: options.minScore ?? (options.weights === undefined ? minScoreOf(io) : undefined),
    }),
    ...(options.weights !== undefined && { weights: options.weights }),
  })
  const answer = readNegotiation(body)
  if (options.json) printJson(io, body)
  else {
    printRanking(io, answer)
    if (answer.canHandle !== true) print(io, 'No agent can do this.\n')
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
