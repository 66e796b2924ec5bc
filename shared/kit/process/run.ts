import { type Log, markStopping } from './log.ts'
import { outageOf } from './outage.ts'

/** A started server. Its disposal closes all its resources in reverse order. */
export interface Running extends AsyncDisposable {
  /** Resolves with the reason when the server has to stop without a signal. */
  readonly ended?: Promise<string>
}

/** Under `npm start`, Ctrl-C arrives twice: from the terminal and from npm. Signals within this time count as one. */
const sameSignalMs = 1000

/**
 * Starts a server, waits for SIGINT, SIGTERM or the close of the parent's IPC channel, and disposes the server. Resolves with
 * the exit code; failures caused only by unavailable dependencies still count as 0. On a second Ctrl-C, or after
 * `stopLimitMs`, the process exits immediately with 1.
 */
export async function run(
  start: () => Promise<Running>,
  options: { log: Log; stopLimitMs?: number },
): Promise<number> {
  const stop = stopRequested()
  const running = await start()
  const reason = await Promise.race([stop.promise, ...(running.ended === undefined ? [] : [running.ended])])
  options.log.info({ reason }, 'stopping')
  markStopping(options.log)
  const limit = setTimeout(
    () => hardExit(options.log, 'shutdown took too long'),
    options.stopLimitMs ?? 30_000,
  )
  limit.unref()
  const secondSignal = () => hardExit(options.log, 'second signal')
  const acceptSecondSignal = setTimeout(() => process.once('SIGINT', secondSignal), sameSignalMs).unref()
  try {
    await running[Symbol.asyncDispose]()
    return 0
  } catch (error) {
    const outage = outageOf(error)
    options.log.error(
      { err: error },
      outage === undefined ? 'shutdown failed' : 'stopped while a dependency was unavailable',
    )
    return outage === undefined ? 1 : 0
  } finally {
    clearTimeout(limit)
    clearTimeout(acceptSecondSignal)
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
  log.error({ reason }, 'exited without a clean shutdown')
  process.exit(1)
}
