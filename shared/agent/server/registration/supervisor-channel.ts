import type { Identity } from '@parley/kit/did/identity'
import { z } from 'zod'

const clientMessage = z.object({
  type: z.literal('client'),
  client_id: z.string().min(1).optional(),
  client_secret: z.string().min(1).optional(),
})

/** The OAuth client that a supervisor passes to its agent. */
export interface SuppliedClient {
  clientId: string
  clientSecret: string
}

/** Whether this process has an IPC channel to a supervisor. */
export const isSupervised = (): boolean => process.send !== undefined

/**
 * Sends the agent's identity to the supervisor and waits for an OAuth client. The client is registered after the agent has a
 * key. Its secret is not in the environment, which other processes may read. Undefined if the operator configures clients.
 * @throws Error when the supervisor does not answer within `waitMs` (default 15 s)
 */
export async function requestClient(
  { did, document }: Identity,
  waitMs = 15_000,
): Promise<SuppliedClient | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<SuppliedClient | undefined>()
  const timer = setTimeout(() => reject(new Error('the supervisor did not send an OAuth client')), waitMs)
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

/** Reports to the supervisor that the agent is listening. `replica` is the ID of this process if it is one of several. */
export function reportReady(url: string, card: object, replica?: string): void {
  process.send?.({ type: 'ready', url, card, ...(replica !== undefined && { replica }) })
}
