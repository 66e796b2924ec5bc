import { usualWeights } from '@parley/negotiation/score/usual'
import { snakeOf } from '@parley/wire/codecs/parley/spelling'
import { InvalidArgumentError } from 'commander'
import { minScoreOf } from '../server/environment.ts'
import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { printRanking, type ShownNegotiation } from '../terminal/ranking-view.ts'

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
const weightsDefault = Object.fromEntries(
  Object.entries(usualWeights).map(([name, weight]) => [snakeOf(name), weight]),
)

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
    .option('--weights <list>', 'for example skill_match=0.8,load=0.2 (default: as for a message)', weights)
    .option('--limit <count>', 'candidates shown', wholeNumber, 10)
    .option('--json', 'print the gateway’s answer as JSON')
    .addHelpText('after', '\nExit codes: 0 an agent can do it; 1 none can; 2 wrong use.')
    .run((text: string, options: NegotiateOptions) => negotiate(io, text, options))
}

async function negotiate(io: Io, text: string, options: NegotiateOptions): Promise<number> {
  const server = await connect(io, options)
  const { body } = await server.send('POST', '/agent/negotiation', {
    task_summary: text,
    weights: options.weights ?? weightsDefault,
    limit: options.limit,
    ...given({
      task_details: options.details,
      input_mime_types: options.input,
      output_mime_types: options.output,
      max_latency_ms: options.maxLatency,
      max_cost_amount: options.maxCost,
      required_tools: options.tool,
      forbidden_tools: options.withoutTool,
      // The threshold is one of the usual weights.
      min_score: options.minScore ?? (options.weights === undefined ? minScoreOf(io) : undefined),
    }),
  })
  const answer = body as ShownNegotiation
  if (options.json) printJson(io, answer)
  else {
    printRanking(io, answer)
    if (answer.can_handle !== true) print(io, 'No agent can do this.\n')
  }
  return answer.can_handle === true ? 0 : 1
}

function given(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
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
      throw new InvalidArgumentError(`Weights are ${Object.keys(weightsDefault).join(', ')}.`)
  return Object.fromEntries(pairs.map(([name, value = '']) => [name, share(value)]))
}
