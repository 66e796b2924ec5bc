import { type Log, tellStop } from './log.ts'
import { outageOf } from './outage.ts'

/** A started server: what it opened is closed by its disposal, in reverse. */
export interface Running extends AsyncDisposable {
  /** Resolves when the server must stop by itself, with the reason. */
  readonly ended?: Promise<string>
}

/** Ctrl-C under `npm start` arrives twice: from the terminal and from npm. What comes within this time is the same wish. */
const sameSignalMs = 1000

/**
 * Starts, waits for SIGINT or SIGTERM (or for the parent's IPC channel to close), disposes. Resolves with the exit code: 0
 * as well where the stop failed at nothing but what is away. A second Ctrl-C, or a stop that takes longer than `stopLimitMs`,
 * ends the process at once with 1.
 */
export async function run(
  start: () => Promise<Running>,
  options: { log: Log; stopLimitMs?: number },
): Promise<number> {
  const stop = stopRequested()
  const running = await start()
  const reason = await Promise.race([stop.promise, ...(running.ended === undefined ? [] : [running.ended])])
  options.log.info({ reason }, 'stopping')
  tellStop(options.log)
  const limit = setTimeout(() => hardExit(options.log, 'stop took too long'), options.stopLimitMs ?? 30_000)
  limit.unref()
  const secondSignal = () => hardExit(options.log, 'second signal')
  const patience = setTimeout(() => process.once('SIGINT', secondSignal), sameSignalMs).unref()
  try {
    await running[Symbol.asyncDispose]()
    return 0
  } catch (error) {
    const away = outageOf(error)
    options.log.error({ err: error }, away === undefined ? 'stop failed' : 'stopped while something was away')
    return away === undefined ? 1 : 0
  } finally {
    clearTimeout(limit)
    clearTimeout(patience)
    process.off('SIGINT', secondSignal)
    stop.release()
  }
}

function stopRequested(): { promise: Promise<string>; release: () => void } {
  const { promise, resolve } = Promise.withResolvers<string>()
  const names = ['SIGINT', 'SIGTERM', 'disconnect'] as const
  const listeners = names.map((name) => [name, () => resolve(name)] as const)
  for (const [name, listener] of listeners) process.on(name, listener)
  return {
    promise,
    release: () => {
      for (const [name, listener] of listeners) process.off(name, listener)
    },
  }
}

function hardExit(log: Log, reason: string): void {
  log.error({ reason }, 'ended without a clean stop')
  process.exit(1)
}
