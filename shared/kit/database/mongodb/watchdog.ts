import type { MongoClient } from 'mongodb'

/** Limits counted in checks, which run once a second. The count does not grow while the process is suspended. */
export interface WatchLimits {
  /** Number of checks after which a driver heartbeat is considered stuck. */
  heartbeatMax: number
  /** Number of checks after which a command is considered stuck; undefined means never. */
  commandMax: number | undefined
}

const lookMs = 1000

/**
 * Reconnects the client when it is stuck. If a socket closes during a write, the driver (7.8) waits forever: a
 * command never releases its connection, and a heartbeat is never followed by another, so the driver does not notice
 * that the server has restarted. A wait that exceeds the driver's own timeouts is treated as stuck.
 */
export function watchOver(client: MongoClient, limits: WatchLimits = limitsOf(client)): Disposable {
  const { heartbeatMax, commandMax = Number.POSITIVE_INFINITY } = limits
  const heartbeats = new Map<string, number>()
  const commands = new Map<string, number>()
  const undo = listen(client, heartbeats, commands)
  let [connecting, lost, over] = [false, false, false]
  const connectAnew = async () => {
    heartbeats.clear()
    commands.clear()
    await client.close()
    if (over) return
    await client.connect()
    lost = false
    if (over) await client.close()
  }
  const look = async () => {
    const waits = [grown(heartbeats) > heartbeatMax, grown(commands) > commandMax]
    if (connecting || !(lost || waits.includes(true))) return
    connecting = lost = true
    // A client that failed to connect stops looking for its server, so the next check reconnects it.
    await connectAnew().catch(() => {})
    connecting = false
  }
  const timer = setInterval(() => void look(), lookMs).unref()
  return {
    [Symbol.dispose]: () => {
      over = true
      clearInterval(timer)
      undo()
    },
  }
}

/**
 * Connecting and the first heartbeat each have a timeout; the server answers later heartbeats only after a change.
 */
function limitsOf({ options }: MongoClient): WatchLimits {
  const { connectTimeoutMS, heartbeatFrequencyMS, socketTimeoutMS } = options
  const heartbeatMs = 2 * connectTimeoutMS + heartbeatFrequencyMS
  return {
    heartbeatMax: Math.ceil(heartbeatMs / lookMs) + 1,
    commandMax:
      socketTimeoutMS > 0 ? Math.ceil((connectTimeoutMS + socketTimeoutMS) / lookMs) + 1 : undefined,
  }
}

/** Counts one more check for each wait and returns the longest wait. */
function grown(waits: Map<string, number>): number {
  let most = 0
  for (const [id, looks] of waits) {
    waits.set(id, looks + 1)
    most = Math.max(most, looks + 1)
  }
  return most
}

interface AtConnection {
  address: string
  connectionId: number | '<monitor>'
}

function listen(
  client: MongoClient,
  heartbeats: Map<string, number>,
  commands: Map<string, number>,
): () => void {
  const idOf = ({ address, connectionId }: AtConnection) => `${address} ${connectionId}`
  const asked = ({ connectionId }: { connectionId: string }) => void heartbeats.set(connectionId, 0)
  const answered = ({ connectionId }: { connectionId: string }) => void heartbeats.delete(connectionId)
  const taken = (event: AtConnection) => void commands.set(idOf(event), 0)
  const given = (event: AtConnection) => void commands.delete(idOf(event))
  client.on('serverHeartbeatStarted', asked)
  client.on('serverHeartbeatSucceeded', answered).on('serverHeartbeatFailed', answered)
  client.on('connectionCheckedOut', taken)
  client.on('connectionCheckedIn', given).on('connectionClosed', given)
  return () => {
    client.off('serverHeartbeatStarted', asked)
    client.off('serverHeartbeatSucceeded', answered).off('serverHeartbeatFailed', answered)
    client.off('connectionCheckedOut', taken)
    client.off('connectionCheckedIn', given).off('connectionClosed', given)
  }
}
