import type { MongoClient } from 'mongodb'

/** In looks of a second; a process that was frozen has looked no more often than before. */
export interface WatchLimits {
  /** How many looks an answer to the driver's question whether the server is there may take. */
  heartbeatMax: number
  /** How many looks a command may keep its connection; undefined: as many as it likes. */
  commandMax: number | undefined
}

const lookMs = 1000

/**
 * The driver (7.8) waits for ever where a socket ends in the moment of a write: such a command keeps its connection, and such
 * a question whether the server is there is its last one, so that a server that comes back is never found. What takes longer
 * than the driver's own limits allow is such a wait: the client is closed and connects anew.
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
    // A client that could not connect asks for its server no more: it is made to again with the next look.
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

/** Connecting and the first question have a limit each; a server that knows it answers only when something changes. */
function limitsOf({ options }: MongoClient): WatchLimits {
  const { connectTimeoutMS, heartbeatFrequencyMS, socketTimeoutMS } = options
  const heartbeatMs = 2 * connectTimeoutMS + heartbeatFrequencyMS
  return {
    heartbeatMax: Math.ceil(heartbeatMs / lookMs) + 1,
    commandMax:
      socketTimeoutMS > 0 ? Math.ceil((connectTimeoutMS + socketTimeoutMS) / lookMs) + 1 : undefined,
  }
}

/** The most looks that any of them has seen. */
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
