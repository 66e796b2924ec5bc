import { z } from 'zod'

/** The state of a process as `GET /health` reports it. */
export interface Health {
  version: string
  id: string
  did: string
  environment: string
  /** Every mandatory check passes, and the process is not draining. */
  ready: boolean
  /** Every mandatory check passes. */
  strictReady: boolean
  uptimeSeconds: number
  timestamp: string
  storageBackend: string
  schedulerBackend: string
  taskManagerRunning: boolean
  nodeVersion: string
  platform: string
  checks: Record<string, string | undefined>
}

/** The field names come from the contract (spec/operations.md#health). */
export function healthOut(health: Health) {
  return {
    version: health.version,
    health: health.ready ? 'healthy' : 'degraded',
    status: health.ready ? 'ok' : 'degraded',
    ready: health.ready,
    uptime_seconds: health.uptimeSeconds,
    timestamp: health.timestamp,
    runtime: {
      storage_backend: health.storageBackend,
      scheduler_backend: health.schedulerBackend,
      task_manager_running: health.taskManagerRunning,
      strict_ready: health.strictReady,
    },
    application: { penguin_id: health.id, agent_did: health.did },
    system: {
      python_version: 'n/a',
      node_version: health.nodeVersion,
      platform: health.platform,
      environment: health.environment,
    },
    checks: health.checks,
  }
}

const check = z.string().describe('`ok`, or an error')

/** The body of `GET /health`. */
export const healthAnswer = z
  .object({
    version: z.string(),
    health: z.enum(['healthy', 'degraded']),
    status: z.enum(['ok', 'degraded']),
    ready: z.boolean(),
    uptime_seconds: z.int().min(0),
    timestamp: z.iso.datetime({ offset: true }),
    runtime: z.object({
      storage_backend: z.string(),
      scheduler_backend: z.string(),
      task_manager_running: z.boolean(),
      strict_ready: z.boolean(),
    }),
    application: z.object({ penguin_id: z.string(), agent_did: z.string() }),
    system: z.object({
      python_version: z.string(),
      node_version: z.string(),
      platform: z.string(),
      environment: z.enum(['production', 'development']),
    }),
    checks: z.record(z.string(), check),
  })
  .meta({ id: 'Health' })
