import { type Health, healthAnswer, healthOut } from '@parley/wire/codecs/parley/health'
import { timestamp } from '@parley/wire/model/timestamp'
import type { FastifyInstance } from 'fastify'
import type { OperationDescription } from './route-description.ts'

/** Checks that a dependency responds, and rejects if it does not. */
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
  /** Dependencies such as `storage`, `scheduler` and `bus`; `/health` returns 503 while one of them fails. */
  mandatory: Record<string, Ping>
  /** Dependencies that are listed in the response but do not affect readiness. */
  optional: Record<string, Ping>
}

const pingTimeoutMs = 1000

/** Resolves with the mandatory checks that currently fail, as name → error text. Never rejects. */
export type FailingChecks = () => Promise<Record<string, string>>

const api: OperationDescription = {
  summary: 'State of the server and of its dependencies',
  tag: 'operations',
  access: 'public',
  responses: {
    200: { description: 'Ready', json: healthAnswer },
    503: { description: 'Not ready', json: healthAnswer },
  },
}

/**
 * Adds `GET /health`. Responses with 200 and 503 have the same fields (spec/operations.md#health).
 * @returns a function that runs the mandatory checks
 */
export function addHealthRoute(app: FastifyInstance, options: HealthOptions): FailingChecks {
  const started = process.hrtime.bigint()
  const runChecks = shared(() => Promise.all([checkAll(options.mandatory), checkAll(options.optional)]))
  app.get('/health', { config: { api, trace: 'never' } }, async (_request, reply) => {
    const [mandatory, optional] = await runChecks()
    const strictReady = Object.values(mandatory).every((result) => result === 'ok')
    const ready = strictReady && !options.draining()
    const uptimeSeconds = Number((process.hrtime.bigint() - started) / 1_000_000_000n)
    return reply
      .code(ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send(healthBody(options, { ready, strictReady, uptimeSeconds, checks: checksOf(mandatory, optional) }))
  })
  return async () => {
    const [mandatory] = await runChecks()
    return Object.fromEntries(Object.entries(mandatory).filter(([, result]) => result !== 'ok'))
  }
}

/**
 * `grpc` and `extensions` are part of the contract (spec/operations.md#health) and always `ok`: neither has a state
 * here.
 */
function checksOf(mandatory: Record<string, string>, optional: Record<string, string>) {
  const { storage, scheduler, bus, ...others } = mandatory
  return { storage, scheduler, bus, grpc: 'ok', ...others, extensions: 'ok', ...optional }
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

/** Shares one run of the checks among concurrent requests, because `/health` is public. */
function shared<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }
}

async function checkAll(pings: Record<string, Ping>): Promise<Record<string, string>> {
  const results = Object.entries(pings).map(async ([name, ping]) => [name, await check(ping)] as const)
  return Object.fromEntries(await Promise.all(results))
}

/** Returns `ok` or a fixed error text, because driver messages are not public. */
async function check(ping: Ping): Promise<string> {
  const { promise: late, resolve } = Promise.withResolvers<string>()
  const timer = setTimeout(() => resolve(`error: no response within ${pingTimeoutMs} ms`), pingTimeoutMs)
  try {
    return await Promise.race([ping().then(() => 'ok'), late])
  } catch {
    return 'error: unavailable'
  } finally {
    clearTimeout(timer)
  }
}
