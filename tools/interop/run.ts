import { setTimeout as wait } from 'node:timers/promises'
import { WebhookReceiver } from '../testing/webhook-receiver.ts'
import type { ClientKind } from './client.ts'
import type { InteropDeployment } from './deployment.ts'
import { type Step, steps } from './steps.ts'

/** Of one step with one client at one address; absent if the SDK lacks the operation. */
export type Cell = 'ok' | { failure: string } | undefined

export const addresses = ['direct', 'named', 'gateway'] as const
export type Address = (typeof addresses)[number]

export function baseOf(deployment: InteropDeployment, address: Address): string {
  if (address === 'direct') return deployment.direct('calculator')
  return address === 'named' ? `${deployment.gateway}agents/calculator/` : deployment.gateway
}

/** Runs every step with this client at this address of the calculator. */
export async function runSteps(
  kind: ClientKind,
  deployment: InteropDeployment,
  address: Address,
): Promise<Map<Step, Cell>> {
  const token = address === 'direct' ? await deployment.tokenFor('calculator') : deployment.token
  return await runStepsAt(kind, { base: baseOf(deployment, address), token })
}

/** Runs every step. A failed step does not stop the others. */
export async function runStepsAt(
  kind: ClientKind,
  { base, token }: { base: string; token: string },
): Promise<Map<Step, Cell>> {
  const cells = new Map<Step, Cell>()
  await using receiver = await WebhookReceiver.start()
  const connecting = await kind.connect(base, token).catch((error: unknown) => String(error))
  if (typeof connecting === 'string') {
    for (const step of steps) cells.set(step, { failure: connecting })
    return cells
  }
  await using client = connecting
  for (const step of steps) {
    const lacks = step.needs.some((operation) => kind.lacks.includes(operation))
    if (lacks) cells.set(step, undefined)
    else cells.set(step, await attempt(() => step.run({ kind, client, base, token, receiver })))
  }
  return cells
}

/** Limit of one step, so that a stream that does not end is reported as a failure. */
const stepMs = 60_000

export async function attempt(run: () => Promise<void>): Promise<Cell> {
  try {
    const late = wait(stepMs, undefined, { ref: false }).then(() => {
      throw new Error(`not finished after ${stepMs / 1000} s`)
    })
    await Promise.race([run(), late])
    return 'ok'
  } catch (error) {
    return { failure: error instanceof Error ? `${error.name}: ${error.message}` : String(error) }
  }
}

/** The cell as text in a table. */
export const shown = (cell: Cell) => (cell === undefined ? '–' : cell === 'ok' ? 'ok' : 'FAILED')
