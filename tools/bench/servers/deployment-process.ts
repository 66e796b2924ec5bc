/** A gateway that supervises the agents in `AGENTS` (folders relative to `agents/`). It writes a token for callers to `TOKEN_FILE`. */
import { writeFile } from 'node:fs/promises'
import { startDeployment } from '../../interop/deployment.ts'

const { AGENTS = '', TOKEN_FILE = '' } = process.env
const deployment = await startDeployment(AGENTS.split(','))
await writeFile(TOKEN_FILE, deployment.token)
console.error(JSON.stringify({ address: deployment.gateway.replace(/\/$/, '') }))
process.on('SIGTERM', () => void deployment[Symbol.asyncDispose]().then(() => process.exit(0)))
