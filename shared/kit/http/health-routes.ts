import { type Health, healthOut } from '@parley/wire/codecs/parley/health'
import { timestamp } from '@parley/wire/model/timestamp'
import type { FastifyInstance } from 'fastify'

/** Asks a dependency itself; rejects when it does not answer. */
export type Ping = () => Promise<void>

export interface HealthOptions {
  version: string
  id: string
  did: string
  environment: string
  storageBackend: string
  schedulerBackend: string
  taskManagerRunning: () => boolean
  draining: () => boolean
  /** `storage`, `scheduler`, `bus` and others; the health is degraded while one of them fails. */
  mandatory: Record<string, Ping>
  /** Shown, not mandatory. */
  shown: Record<string, Ping>
}

const pingTimeoutMs = 1000

/** Resolves with the names of the mandatory checks that fail now, and what each says. Never rejects. */
export type FailingChecks = () => Promise<Record<string, string>>

/**
 * `GET /health`: both bodies hold the union of the shapes of 200 and 503 (spec/operations.md#health).
 * @returns the same checks for this process
 */
export function addHealthRoute(app: FastifyInstance, options: HealthOptions): FailingChecks {
  const started = process.hrtime.bigint()
  const ask = shared(() => Promise.all([askAll(options.mandatory), askAll(options.shown)]))
  app.get('/health', async (_request, reply) => {
    const [mandatory, shown] = await ask()
    const strictReady = Object.values(mandatory).every((answer) => answer === 'ok')
    const ready = strictReady && !options.draining()
    const uptimeSeconds = Number((process.hrtime.bigint() - started) / 1_000_000_000n)
    return reply
      .code(ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send(healthBody(options, { ready, strictReady, uptimeSeconds, checks: checksOf(mandatory, shown) }))
  })
  return async () => {
    const [mandatory] = await ask()
    return Object.fromEntries(Object.entries(mandatory).filter(([, answer]) => answer !== 'ok'))
  }
}

/** The contract names `grpc` and `extensions` (spec/operations.md#health): there is no gRPC, and extensions hold no state. */
function checksOf(mandatory: Record<string, string>, shown: Record<string, string>) {
  const { storage, scheduler, bus, ...others } = mandatory
  return { storage, scheduler, bus, grpc: 'ok', ...others, extensions: 'ok', ...shown }
}

function healthBody(
  options: HealthOptions,
  now: Pick<Health, 'ready' | 'strictReady' | 'uptimeSeconds' | 'checks'>,
) {
  return healthOut({
    ...options,
    ...now,
    timestamp: timestamp(),
    taskManagerRunning: options.taskManagerRunning(),
    nodeVersion: process.versions.node,
    platform: process.platform,
  })
}

/** Anybody may ask for the health: those who ask while an answer is under way share it, so that the disk is asked once. */
function shared<T>(ask: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | undefined
  return () => {
    underWay ??= ask().finally(() => {
      underWay = undefined
    })
    return underWay
  }
}

async function askAll(pings: Record<string, Ping>): Promise<Record<string, string>> {
  const answers = Object.entries(pings).map(async ([name, ping]) => [name, await ask(ping)] as const)
  return Object.fromEntries(await Promise.all(answers))
}

/** Texts of our own: what a driver says of its failure stays inside. */
async function ask(ping: Ping): Promise<string> {
  const { promise: late, resolve } = Promise.withResolvers<string>()
  const timer = setTimeout(() => resolve(`error: no answer within ${pingTimeoutMs} ms`), pingTimeoutMs)
  try {
    return await Promise.race([ping().then(() => 'ok'), late])
  } catch {
    return 'error: does not answer'
  } finally {
    clearTimeout(timer)
  }
}
