/** A gateway at which the agent at `UPSTREAM` is registered, with the relay. It writes a token for callers to `TOKEN_FILE`. */
import { writeFile } from 'node:fs/promises'
import { startDeployment } from '../../interop/deployment.ts'
import { join } from '../../interop/foreign.ts'

const { UPSTREAM = '', TOKEN_FILE = '' } = process.env
const deployment = await startDeployment([])
await join(UPSTREAM, 'js-v1', deployment)
await writeFile(TOKEN_FILE, deployment.token)
console.error(JSON.stringify({ address: deployment.gateway.replace(/\/$/, '') }))
process.on('SIGTERM', () => void deployment[Symbol.asyncDispose]().then(() => process.exit(0)))
