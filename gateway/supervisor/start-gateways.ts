import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Log } from '@parley/kit/process/log'
import { type Addresses, freePort, reachable } from '../addresses.ts'
import type { GatewayConfig } from '../config.ts'
import { AdditionalGateway } from './additional-gateway.ts'
import { Ports } from './ports.ts'
import { logForwarder } from './process-output.ts'

export interface StartGatewaysOptions {
  /** The number of gateways in addition to this one. */
  count: number
  config: GatewayConfig
  environment: NodeJS.ProcessEnv
  addresses: Addresses
  log: Log
}

/** Starts additional gateways on the next ports. All share the database, Redis, public address and secrets. */
export async function startGateways(options: StartGatewaysOptions): Promise<AdditionalGateway[]> {
  const { count, config, environment, addresses, log } = options
  const pass = logForwarder(process.stderr)
  const ports = new Ports(config.host, config.port === 0 ? 0 : config.port + 1)
  const gateways: AdditionalGateway[] = []
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
    gateways.push(new AdditionalGateway({ command: gatewayCommand(), url, env, pass, log }))
  }
  return gateways
}

/** Returns the entry point next to this folder, which is TypeScript in a clone and JavaScript in the package. */
function gatewayCommand() {
  const here = fileURLToPath(import.meta.url)
  const entry = path.resolve(path.dirname(here), `../gateway-process${path.extname(here)}`)
  return { file: process.execPath, args: ['--disable-warning=ExperimentalWarning', entry] }
}
