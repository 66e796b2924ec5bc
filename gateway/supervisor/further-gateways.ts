import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Log } from '@parley/kit/process/log'
import { type Addresses, freePort, reachable } from '../addresses.ts'
import type { GatewayConfig } from '../config.ts'
import { agentLines } from './agent-lines.ts'
import { FurtherGateway } from './further-gateway.ts'
import { Ports } from './ports.ts'

export interface FurtherGatewaysOptions {
  /** How many beside this one. */
  count: number
  config: GatewayConfig
  environment: NodeJS.ProcessEnv
  addresses: Addresses
  log: Log
}

/** Gateways beside the one that runs the agents, on the ports after its own: the same database, Redis, address and secrets. */
export async function startFurtherGateways(options: FurtherGatewaysOptions): Promise<FurtherGateway[]> {
  const { count, config, environment, addresses, log } = options
  const pass = agentLines(process.stderr)
  const ports = new Ports(config.host, config.port === 0 ? 0 : config.port + 1)
  const gateways: FurtherGateway[] = []
  for (let n = 0; n < count; n += 1) {
    const port = (await ports.take()) || (await freePort(config.host))
    const env = {
      ...environment,
      HOST: config.host,
      PORT: String(port),
      PUBLIC_URL: addresses.public,
      DATA_DIR: config.dataDir,
    }
    const url = `http://${reachable(config.host)}:${port}`
    gateways.push(new FurtherGateway({ command: gatewayCommand(), url, env, pass, log }))
  }
  return gateways
}

/** The entry beside this file, in the language of this file: TypeScript in the sources, JavaScript in the package. */
function gatewayCommand() {
  const here = fileURLToPath(import.meta.url)
  const entry = path.resolve(path.dirname(here), `../gateway-process${path.extname(here)}`)
  return { file: process.execPath, args: ['--disable-warning=ExperimentalWarning', entry] }
}
