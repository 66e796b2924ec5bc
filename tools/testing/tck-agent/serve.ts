import { testAgent } from '@parley/agent/testing'
import definition from './agent.ts'

/**
 * Serves the agent on PORT with an OAuth server, and prints its address and a token as JSON. It stops with SIGTERM or when
 * its input ends. With PUSH_NOTIFICATIONS=false, the agent has no webhooks: a mandatory test of the branch 0.3.x reads this
 * capability from the wrong object and expects -32003 of every agent.
 */
const port = process.env['PORT'] ?? '9999'
const env = { PORT: port, WEBHOOK_ALLOWED_HOSTS: 'localhost,127.0.0.1', RATE_LIMIT_PER_MINUTE: '0' }
const capabilities = { pushNotifications: process.env['PUSH_NOTIFICATIONS'] !== 'false' }
const agent = await testAgent({ ...definition, capabilities }, { env, store: 'memory' })
const { token } = agent.caller('tck')
process.stdout.write(`${JSON.stringify({ url: agent.url, token })}\n`)
const stop = () => void agent[Symbol.asyncDispose]().then(() => process.exit(0))
process.once('SIGTERM', stop)
process.stdin.once('end', stop).resume()
