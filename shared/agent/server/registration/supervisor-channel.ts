import { signStart } from '@parley/kit/did/challenge'
import type { Identity } from '@parley/kit/did/identity'
import { z } from 'zod'

const challengeMessage = z.object({ type: z.literal('challenge'), nonce: z.string().min(1) })
const clientMessage = z.object({
  type: z.literal('client'),
  client_id: z.string().min(1).optional(),
  client_secret: z.string().min(1).optional(),
  store_url: z.string().min(1).optional(),
})

/** The OAuth client that a supervisor passes to its agent. */
export interface SuppliedClient {
  clientId: string
  clientSecret: string
}

/** What a supervisor passes to its agent. */
export interface Supplies {
  /** Undefined if the operator configures the agents' OAuth clients. */
  client: SuppliedClient | undefined
  /** STORE_URL with the user of this agent. Undefined if the store is embedded. */
  storeUrl: string | undefined
}

/** Whether this process has an IPC channel to a supervisor. */
export const isSupervised = (): boolean => process.send !== undefined

/**
 * Sends the agent's identity to the supervisor, proves that it has the key, and waits for its OAuth client and store. The
 * client is registered after the agent has a key. The secrets are not in the environment, which other processes may read.
 * @throws Error when the supervisor does not answer within `waitMs` (default 24 h, because it may move the agent's data
 * first)
 */
export async function requestSupplies(
  { did, document, key }: Identity,
  waitMs = 24 * 60 * 60 * 1000,
): Promise<Supplies> {
  const { promise, resolve, reject } = Promise.withResolvers<Supplies>()
  const timer = setTimeout(() => reject(new Error('the supervisor did not send an OAuth client')), waitMs)
  const listen = (message: unknown) => {
    const { nonce } = challengeMessage.safeParse(message).data ?? {}
    if (nonce !== undefined) process.send?.({ type: 'proof', signature: signStart(nonce, did, key) })
    const read = clientMessage.safeParse(message)
    if (!read.success) return
    const { client_id: clientId, client_secret: clientSecret, store_url: storeUrl } = read.data
    const isConfigured = clientId === undefined || clientSecret === undefined
    resolve({ client: isConfigured ? undefined : { clientId, clientSecret }, storeUrl })
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
