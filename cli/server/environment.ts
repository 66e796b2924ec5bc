import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { cliSettings, commonSettings, gatewaySettings, readSettings } from '@parley/kit/process/settings'
import { routeMinScore } from '@parley/negotiation/score/weights'
import { UsageError } from '../terminal/faults.ts'
import type { Io } from '../terminal/io.ts'

/** Loads `.env` from the working folder. Existing environment variables take precedence. */
export function loadDotEnv(io: Io): void {
  let text: string
  try {
    text = readFileSync(path.join(io.cwd, '.env'), 'utf8')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return
    throw new UsageError(`.env cannot be read (${(thrown as NodeJS.ErrnoException).code}).`)
  }
  for (const [name, value] of Object.entries(parseEnv(text))) io.env[name] ??= value
}

const { HOST, PORT, PUBLIC_URL, DATA_DIR } = commonSettings
const settings = { HOST, PORT, PUBLIC_URL, DATA_DIR, ...cliSettings }

/** Settings of the commands that call a running server. @throws ConfigError */
export function clientSettings(io: Io): { url: string; dataDir: string; token: string | undefined } {
  const values = readSettings(settings, io.env)
  return {
    url: values.PUBLIC_URL ?? `http://${reachable(values.HOST)}:${values.PORT}`,
    dataDir: path.resolve(io.cwd, values.DATA_DIR),
    token: values.PARLEY_TOKEN,
  }
}

/** Minimum score for routing a message that names no agent. @throws ConfigError */
export function minScoreOf(io: Io): number {
  const { ROUTE_MIN_SCORE } = gatewaySettings
  return readSettings({ ROUTE_MIN_SCORE }, io.env).ROUTE_MIN_SCORE ?? routeMinScore
}

/** A server that listens on all interfaces is reached through loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
