import { runGateway } from './main.ts'

// Started by the gateway that runs the agents, where there are several on one machine.
process.exitCode = await runGateway({ supervise: false, quiet: true })
