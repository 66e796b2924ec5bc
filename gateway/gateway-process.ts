import { runGateway } from './main.ts'

// Entry point of additional gateways, started by the gateway that runs the agents.
process.exitCode = await runGateway({ supervise: false, quiet: true })
