import { Option } from 'commander'
import { CliCommand } from '../cli-command.ts'
import { type Io, print, printJson } from '../io.ts'
import { oneLine } from '../printable.ts'
import { connect, type ServerOptions, slugOf, withServerOptions } from '../server-connection.ts'

interface PaymentsOptions extends ServerOptions {
  orphaned?: true
  state: string
  refunded?: string
  tx?: string
  json?: true
}

interface ListedPayment {
  payment_id?: string
  state?: string
  amount?: string
  asset?: string
  network?: string
  payer?: string
  tx_hash?: string
  task_id?: string
  reason?: string
}

const states = ['orphaned', 'unknown', 'settled', 'spent', 'earned', 'refunded', 'failed', 'open', 'expired']
const pageSize = 200
const pagesMax = 500

const help = `
It is for the operator: with --token or PARLEY_TOKEN a token with agent:admin, else one of the client that the embedded
OAuth server keeps for whoever has its folder.

An orphaned payment was settled, and nothing was had for it: its amount belongs to its payer. Say --refunded <payment> before you
send the money back (of two operators, one is the first), and name the transaction with --tx.`

/** The ledger of an agent, as its operator sees it. */
export default function paymentsCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('payments'))
    .argument('<agent>', 'name of the agent (npx parley agents)')
    .option('--orphaned', 'what is to be paid back (the default)')
    .addOption(new Option('--state <state>', 'payments in this state').choices(states).default('orphaned'))
    .option('--refunded <payment>', 'note that this orphaned payment is paid back')
    .option('--tx <hash>', 'with --refunded: the transaction')
    .option('--json', 'print the agent’s answer as JSON')
    .addHelpText('after', help)
    .run(async (agent: string, options: PaymentsOptions) => {
      const server = await connect(io, options, 'operator')
      const path = agent === '-' ? '/payments' : `/agents/${slugOf(agent)}/payments`
      if (options.refunded !== undefined) {
        const body = options.tx === undefined ? {} : { tx_hash: options.tx }
        const answer = await server.send(
          'POST',
          `${path}/${encodeURIComponent(options.refunded)}/refunded`,
          body,
        )
        return options.json
          ? printJson(io, answer.body)
          : print(io, `${oneLine(options.refunded, 60)} is refunded.\n`)
      }
      const payments = await all(server, path, options.orphaned ? 'orphaned' : options.state)
      if (options.json) return printJson(io, { payments, total: payments.length })
      if (payments.length === 0) return print(io, 'No payments.\n')
      for (const payment of payments) print(io, linesOf(payment))
    })
}

async function all(
  server: Awaited<ReturnType<typeof connect>>,
  path: string,
  state: string,
): Promise<ListedPayment[]> {
  const found: ListedPayment[] = []
  let cursor: number | undefined
  for (let page = 0; page < pagesMax; page += 1) {
    const place = cursor === undefined ? '' : `&cursor=${cursor}`
    const { body } = await server.getJson(`${path}?state=${state}&limit=${pageSize}${place}`)
    const answer = body as { payments?: ListedPayment[]; next_cursor?: number }
    found.push(...(answer.payments ?? []))
    if (typeof answer.next_cursor !== 'number') break
    cursor = answer.next_cursor
  }
  return found
}

/** What a refund needs: how much of what, to whom, and why. */
function linesOf(payment: ListedPayment): string {
  const { payment_id: id, state, amount, asset, network, payer, reason } = payment
  const text = (value: unknown) => oneLine(typeof value === 'string' ? value : '-', 100)
  return [
    `${text(id)}  ${text(state)}${reason === undefined ? '' : ` (${text(reason)})`}`,
    `  ${text(amount)} of ${text(asset)} on ${text(network)}`,
    `  from ${text(payer)}`,
    `  transaction ${text(payment.tx_hash)}`,
    `  task ${text(payment.task_id)}\n`,
  ].join('\n')
}
