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
