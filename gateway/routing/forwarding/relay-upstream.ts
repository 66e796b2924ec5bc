import { setTimeout as wait } from 'node:timers/promises'
import { Agent, buildConnector } from 'undici'
import type { RelayAddress } from '../../addresses.ts'
import { type UpstreamOptions, upstreamLimits } from './upstream.ts'

/** How long a connection waits for a relay that is being started, and how often it checks. */
const [startWaitMs, checkMs] = [20_000, 50]

/** Creates connections to the relay, whatever the host of a request is. */
export function createRelayUpstream(relay: Readonly<RelayAddress>, options: UpstreamOptions = {}): Agent {
  const connect = buildConnector({ timeout: options.connectTimeoutMs ?? 2000 })
  const open = async (target: buildConnector.Options, done: buildConnector.Callback) => {
    const until = performance.now() + startWaitMs
    while (relay.url === undefined && performance.now() < until)
      await wait(checkMs, undefined, { ref: false })
    if (relay.url === undefined) {
      done(Object.assign(new Error('the relay is not running'), { code: 'ECONNREFUSED' }), null)
      return
    }
    const { hostname, port } = new URL(relay.url)
    connect({ ...target, hostname, host: hostname, port, protocol: 'http:' }, done)
  }
  return new Agent({
    ...upstreamLimits(options),
    connect: (target, done) => void open(target, done),
  })
}
