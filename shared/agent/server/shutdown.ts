import type { FastifyInstance } from 'fastify'
import type { Services } from './methods/method.ts'

/**
 * Waits for payments in progress and running handlers. After the limit, they are aborted and their tasks run again at the next
 * start.
 */
export async function drain({ scheduler, runner, payments }: Services, limitMs: number): Promise<void> {
  await payments?.drain(limitMs)
  await scheduler.drain(AbortSignal.timeout(limitMs))
  if (scheduler.active === 0) return
  runner.stop()
  await scheduler.drain(AbortSignal.timeout(1000))
}

/** Lets pending responses finish, then closes the remaining connections. */
export async function closeServer(app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), 2000)
  await app.close()
  clearTimeout(cut)
}
