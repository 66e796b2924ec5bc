import { readLedgerPayment, refundOut } from '@parley/wire/codecs/parley/payments'
import { InvalidArgumentError, Option } from 'commander'
import { connectAsAgent } from '../server/own-agent.ts'
import { isUnpaid, pathOf, paymentsOf, paymentsOfAll, requireOurs } from '../server/payments-of.ts'
import {
  connect,
  type ServerConnection,
  type ServerOptions,
  slugOf,
  withServerOptions,
} from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { CommandFailed, UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'

interface PaymentsOptions extends ServerOptions {
  orphaned?: true
  state: string
  refunded?: string
  tx?: string
  agentUrl?: string
  json?: true
}

const states = [
  'payment-orphaned',
  'unknown',
  'settled',
  'spent',
  'earned',
  'refunded',
  'failed',
  'open',
  'expired',
]
/** Earlier option names that are still accepted. */
const earlierNames: Record<string, string> = { orphaned: 'payment-orphaned' }
const help = `
It is for the operator: with --token or PARLEY_TOKEN a token with agent:admin, else one of the client that the embedded
OAuth server keeps in DATA_DIR.

The author of an agent that runs elsewhere needs no such token: in the folder where the agent was started,
--agent-url http://127.0.0.1:7500 reads the ledger with the OAuth client in DATA_DIR/agents/<agent>.

A payment in the state payment-orphaned was settled, but its work failed or never ran: the amount belongs to its payer. Run --refunded <payment>
before you send the money back (of two operators only the first succeeds), and again with --tx <hash> when it is sent.`

/** `parley payments`: lists the payment ledgers of the agents for their operator. */
export default function paymentsCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('payments'))
    .argument('[agent]', 'name of the agent (see npx parley agents); default: all supervised agents')
    .option('--orphaned', 'payments to be refunded (the default)')
    .addOption(
      new Option('--state <state>', `payments in this state: ${states.join(', ')}`)
        .argParser(stateOf)
        .default('payment-orphaned'),
    )
    .option('--refunded <payment>', 'record that this orphaned payment was refunded')
    .option('--tx <hash>', 'with --refunded: the transaction')
    .option(
      '--agent-url <url>',
      'read the ledger of an agent of your own at its address, with the OAuth client of that agent',
    )
    .option('--json', 'print the agent’s answer as JSON')
    .addHelpText('after', help)
    .run(async (agent: string | undefined, options: PaymentsOptions) => {
      if (options.agentUrl !== undefined) {
        const own = await connectAsAgent(io, agent, options.agentUrl)
        return listOrRefund(io, own, '-', options).catch(noLedger(agent, options))
      }
      const server = await connect(io, options, 'operator')
      const given = options.token ?? io.env['PARLEY_TOKEN']
      if (agent !== undefined && agent !== '-') await requireOurs(server, slugOf(agent), given !== undefined)
      return listOrRefund(io, server, agent, options).catch(noLedger(agent, options))
    })
}

function listOrRefund(
  io: Io,
  server: ServerConnection,
  agent: string | undefined,
  options: PaymentsOptions,
): Promise<void> {
  const { refunded } = options
  return refunded === undefined
    ? list(io, server, agent, options)
    : refund(io, server, agent, { ...options, refunded })
}

/** Turns a missing ledger into an explanation. */
function noLedger(agent: string | undefined, { refunded }: PaymentsOptions) {
  return (thrown: unknown): never => {
    if (agent === undefined || refunded !== undefined || !isUnpaid(thrown)) throw thrown
    throw new CommandFailed(`${agent} takes no payments: it has no ledger.`)
  }
}

function stateOf(given: string): string {
  const state = earlierNames[given] ?? given
  if (!states.includes(state)) throw new InvalidArgumentError(`Allowed choices are ${states.join(', ')}.`)
  return state
}

async function refund(
  io: Io,
  server: ServerConnection,
  agent: string | undefined,
  { refunded, tx, json }: PaymentsOptions & { refunded: string },
): Promise<void> {
  if (agent === undefined) throw new UsageError('--refunded needs the name of the agent that was paid.')
  const path = `${pathOf(agent)}/${encodeURIComponent(refunded)}/refunded`
  const answer = await server.send('POST', path, refundOut(tx))
  if (json) printJson(io, answer.body)
  else print(io, `${oneLine(refunded, 60)} is refunded.\n`)
}

async function list(
  io: Io,
  server: ServerConnection,
  agent: string | undefined,
  options: PaymentsOptions,
): Promise<void> {
  const state = options.orphaned ? 'payment-orphaned' : options.state
  const { payments, silent } =
    agent === undefined
      ? await paymentsOfAll(server, state)
      : { payments: await paymentsOf(server, agent, state), silent: [] }
  if (options.json) {
    const incomplete = silent.length > 0 ? { incomplete: silent } : {}
    printJson(io, { payments, total: payments.length, ...incomplete })
  } else if (payments.length === 0)
    print(io, `No payments in the state ${state}. --state lists other states, for example --state earned.\n`)
  else for (const payment of payments) print(io, linesOf(payment))
  if (silent.length > 0) {
    const names = silent.map((name) => oneLine(name, 40)).join(', ')
    throw new CommandFailed(`The list is incomplete: ${names} did not answer. Try again.`)
  }
}

/** The details needed for a refund: amount, asset, payer and reason. */
function linesOf(row: object): string {
  const payment = readLedgerPayment(row)
  const { paymentId: id, state, amount, asset, network, payer, reason, agent } = payment
  const text = (value: unknown) => oneLine(typeof value === 'string' ? value : '-', 100)
  return [
    `${text(id)}  ${text(state)}${reason === undefined ? '' : ` (${text(reason)})`}`,
    `  ${text(amount)} ${text(payment.assetName ?? asset)} on ${text(network)}${payment.sandbox === true ? ' (test money)' : ''}`,
    // Token names are not unique, so the contract address identifies the asset to refund.
    `  token ${text(asset)}`,
    `  from ${text(payer)}`,
    `  transaction ${text(payment.txHash)}`,
    ...(payment.refundTxHash === undefined ? [] : [`  paid back by ${text(payment.refundTxHash)}`]),
    ...(agent === undefined ? [] : [`  agent ${text(agent)}`]),
    `  task ${text(payment.taskId)}\n`,
  ].join('\n')
}
