import { runGateway } from './main.ts'

// The entry point of additional gateways, which the gateway that runs the agents starts.
process.exitCode = await runGateway({ supervise: false, quiet: true })
