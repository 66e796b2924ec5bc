import type { Identity } from '@parley/kit/did/identity'
import { z } from 'zod'

const clientMessage = z.object({
  type: z.literal('client'),
  client_id: z.string().min(1).optional(),
  client_secret: z.string().min(1).optional(),
})

/** The OAuth client that a supervisor gives to its agent. */
export interface SuppliedClient {
  clientId: string
  clientSecret: string
}

/** True when a supervisor holds the other end of the IPC channel. */
export const isSupervised = (): boolean => process.send !== undefined

/**
 * Tells the supervisor who this agent is and waits for the OAuth client that it made for it: known to nobody before the
 * agent's key exists, and never in an environment that others can read. Undefined where the operator configures clients.
 * @throws Error when no answer comes within `waitMs` (default 15 s)
 */
export async function askForClient(
  { did, document }: Identity,
  waitMs = 15_000,
): Promise<SuppliedClient | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<SuppliedClient | undefined>()
  const timer = setTimeout(() => reject(new Error('the supervisor gave no OAuth client')), waitMs)
  const listen = (message: unknown) => {
    const read = clientMessage.safeParse(message)
    if (!read.success) return
    const { client_id: clientId, client_secret: clientSecret } = read.data
    resolve(clientId === undefined || clientSecret === undefined ? undefined : { clientId, clientSecret })
  }
  process.on('message', listen)
  process.send?.({ type: 'identity', did, document })
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    process.off('message', listen)
  }
}

/** Tells the supervisor that the agent listens; `replica` is the id of this process, where it is one of several. */
export function tellReady(url: string, card: object, replica?: string): void {
  process.send?.({ type: 'ready', url, card, ...(replica !== undefined && { replica }) })
}
