import { setTimeout as wait } from 'node:timers/promises'
import type { FailingChecks } from '@parley/kit/http/health-routes'

const limitMs = 60_000
const everyMs = 250

/** Resolves once no mandatory check of `/health` fails; after 60 s with those that still do. */
export async function untilHealthy(failingChecks: FailingChecks): Promise<Record<string, string>> {
  const until = Date.now() + limitMs
  for (;;) {
    const failing = await failingChecks()
    if (Object.keys(failing).length === 0 || Date.now() >= until) return failing
    // This timer does not keep a stopping gateway alive.
    await wait(everyMs, undefined, { ref: false })
  }
}
