import {
  type Payer,
  type PaymentOption,
  type PaymentRequirements,
  payingFetch,
} from '@parley/client/internal/paying-fetch'
import { ConnectionError } from '@parley/client/internal/rpc-error'
import type { ClientOptions } from '@parley/client/internal/transport'
import { isTestNetwork } from '@parley/engine/payments/facilitators/test-networks'
import { signPayment } from '@parley/engine/payments/x402/wallet'
import type { Requirements } from '@parley/engine/payments/x402/x402'
import { decimalsMax, toAtomic, toWhole } from '@parley/wire/model/amount'
import { CommandFailed } from '../terminal/faults.ts'
import { type Io, say } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'
import { confirm } from '../terminal/question.ts'
import type { ServerConnection } from './server-connection.ts'
import { openWallet } from './wallet.ts'

export interface PayOptions {
  pay?: true
  yes?: true
  max?: string
}

interface Paying {
  io: Io
  server: ServerConnection
  dataDir: string
  /** The agent named on the command line; `-` means the gateway. */
  agent: string
  options: PayOptions
}

/**
 * Returns a `fetch` that shows an agent's price and, with --pay, pays it from the test wallet after confirmation.
 * The `fetch` throws a CommandFailed with the reason if nothing is paid.
 */
export function fetchThatPays(
  paying: Paying,
  send?: ClientOptions['fetch'],
): NonNullable<ClientOptions['fetch']> {
  let paid = 0n
  const payer: Payer = async (asked) => {
    const option = asked.accepts.find(({ network }) => isTestNetwork(network)) ?? asked.accepts[0]
    if (option === undefined)
      throw new CommandFailed('This agent accepts only payment methods that this version does not support.')
    const decimals = await decimalsOf(paying, asked, option)
    const price = `${agentName(paying, asked)} charges ${priceText(asked, option, decimals)}`
    if (!paying.options.pay) throw new CommandFailed(`${price}. Add --pay to pay it with the test wallet.`)
    if (!isTestNetwork(option.network))
      throw new CommandFailed(
        `${price}, which is real money. The test wallet holds test money only: pay with your own x402 client, or start a payment session.`,
      )
    const total = paid + BigInt(option.amount)
    await agree(paying, price, total, decimals)
    paid = total
    const { privateKey, address } = await openWallet(paying.dataDir)
    const resource = asked.resource === undefined ? {} : { resource: asked.resource }
    const payment = await signPayment(privateKey, { requirements: requirementsOf(option), ...resource })
    say(paying.io, `Paying ${priceText(asked, option, decimals)} from ${address}`)
    return payment
  }
  return payingFetch(payer, send)
}

/** Returns the CommandFailed that `fetchThatPays` threw for a request, or undefined for any other failure. */
export function unpaid(thrown: unknown): CommandFailed | undefined {
  const cause = thrown instanceof ConnectionError ? thrown.cause : undefined
  return cause instanceof CommandFailed ? cause : undefined
}

/** Removes the field names of x402 version 1. */
function requirementsOf(option: PaymentOption): Requirements {
  const { network, asset, amount, payTo, maxTimeoutSeconds, extra } = option
  return { scheme: 'exact', network, asset, amount, payTo, maxTimeoutSeconds, extra }
}

/** @throws CommandFailed if the price exceeds --max or the payment is not confirmed */
async function agree({ io, options }: Paying, price: string, total: bigint, decimals: number): Promise<void> {
  const inSmallest = total * 10n ** BigInt(decimalsMax - decimals)
  if (options.max !== undefined && inSmallest > toAtomic(options.max, decimalsMax))
    throw new CommandFailed(`${price}, more than --max ${options.max} allows. Nothing was paid.`)
  if (options.yes || options.max !== undefined) return
  await confirm(io, `${price}. Pay?`, {
    refused: 'Nothing was paid.',
    unattended: `${price}. Add --yes, or --max with an amount, to pay it.`,
  })
}

/** For `-`, the response names the agent that the gateway chose. */
function agentName({ agent }: Paying, asked: PaymentRequirements): string {
  const name = agent === '-' ? asked.agent : agent
  return oneLine(name ?? 'The agent', 80)
}

function priceText(
  { sandbox }: PaymentRequirements,
  { amount, extra, network }: PaymentOption,
  decimals: number,
): string {
  const mark = sandbox ? ', test money' : ''
  return oneLine(`${toWhole(BigInt(amount), decimals)} ${extra.name} (${network}${mark})`, 200)
}

interface CardCost {
  asset?: string
  decimals?: number
  options?: CardCost[]
}

/** The card states the number of decimals, x402 does not. The card is trusted here, because only test money is paid. */
async function decimalsOf(
  paying: Paying,
  asked: PaymentRequirements,
  option: PaymentOption,
): Promise<number> {
  const slug = paying.agent === '-' ? asked.agent : paying.agent
  if (slug === undefined || !/^[a-z0-9-]+$/.test(slug)) return 6
  const { body } = await paying.server.getJson(`/agents/${slug}/.well-known/agent.json`)
  const card = body as { executionCost?: CardCost; skills?: { executionCost?: CardCost }[] }
  const costs = [card.executionCost, ...(card.skills ?? []).map((skill) => skill.executionCost)]
  const ways = costs.flatMap((cost) => (cost === undefined ? [] : [cost, ...(cost.options ?? [])]))
  const found = ways.find(({ asset }) => asset?.toLowerCase() === option.asset.toLowerCase())
  const decimals = found?.decimals
  return Number.isInteger(decimals) && Number(decimals) >= 0 && Number(decimals) <= 36 ? Number(decimals) : 6
}
