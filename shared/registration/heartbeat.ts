import { request } from 'undici'
import type { Log } from '../process/log.ts'

export interface HeartbeatOptions {
  gatewayUrl: string
  did: string
  token: () => Promise<string>
  /** The gateway refused the token. */
  refused: () => void
  figures: () => Record<string, number | undefined>
  log: Log
  /** Default 10 s. */
  everyMs?: number
}

/** Tells the gateway every 10 s that the agent lives, and how busy it is. A gateway that is away is tried again. */
export function startHeartbeat(options: HeartbeatOptions): Disposable {
  let failing = false
  const beat = async () => {
    try {
      await sendHeartbeat(options)
      if (failing) options.log.info('heartbeats reach the gateway again')
      failing = false
    } catch (error) {
      // Once per outage: a gateway that is away for an hour is one line, not three hundred.
      if (!failing) options.log.warn({ err: error }, 'heartbeat did not reach the gateway')
      failing = true
    }
  }
  const timer = setInterval(() => void beat(), options.everyMs ?? 10_000)
  timer.unref()
  // The gateway has to enter the agent first.
  const first = setTimeout(() => void beat(), 500)
  first.unref()
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer)
      clearTimeout(first)
    },
  }
}

/** @throws Error when the gateway does not take it */
export async function sendHeartbeat(options: HeartbeatOptions): Promise<void> {
  const { gatewayUrl, did, token, refused, figures } = options
  const response = await request(`${gatewayUrl}/registry/agents/${encodeURIComponent(did)}/heartbeat`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${await token()}`, 'content-type': 'application/json' },
    body: JSON.stringify(figures()),
    headersTimeout: 5000,
    bodyTimeout: 5000,
  })
  await response.body.dump()
  if (response.statusCode === 401) refused()
  if (response.statusCode >= 300) throw new Error(`the gateway answered ${response.statusCode}`)
}
