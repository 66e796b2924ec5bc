import { type ChildProcess, fork } from 'node:child_process'
import type { Calculation, Outcome } from './outcome.ts'

/** Maximum number of parallel calculations; each has its own process. */
export const concurrentCalculations = 4

export interface CalculationLimits {
  /** Time limit of one calculation. */
  timeoutMs: number
  /** Heap limit of the process. */
  memoryMb: number
  /** An idle process exits after this time, so that an idle agent uses little memory. */
  idleMs: number
}

const defaults: CalculationLimits = { timeoutMs: 5000, memoryMb: 192, idleMs: 30_000 }

/** Time limit for starting the process and loading the language, generous for a busy machine. */
const startMs = 60_000

const idle: { child: ChildProcess; timer: NodeJS.Timeout }[] = []

/** Calculates in a child process, so that no expression can block or terminate this one. */
export async function calculate(
  calculation: Calculation,
  signal: AbortSignal,
  limits: Partial<CalculationLimits> = {},
): Promise<Outcome> {
  signal.throwIfAborted()
  const { timeoutMs, memoryMb, idleMs } = { ...defaults, ...limits }
  const child = takeIdle() ?? start(memoryMb)
  try {
    const outcome = await answerOf(child, { calculation, timeoutMs }, signal, startMs + timeoutMs)
    if (outcome.ok || !endsProcess(outcome.fault)) keep(child, idleMs)
    else child.kill('SIGKILL')
    return outcome
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

const endsProcess = (fault: string) => fault === 'time' || fault === 'memory' || fault === 'size'

function start(memoryMb: number): ChildProcess {
  const child = fork(new URL('./calculating-process.ts', import.meta.url), {
    // The process gets no settings and no secrets, and may neither write files nor start processes.
    env: {},
    execArgv: [`--max-old-space-size=${memoryMb}`, '--permission', '--allow-fs-read=*', '--no-warnings'],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  // A waiting calculation reports the error; between calculations an error only causes a new process.
  return child.on('error', () => {})
}

function answerOf(
  child: ChildProcess,
  request: object,
  signal: AbortSignal,
  limitMs: number,
): Promise<Outcome> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
  const onAbort = () => reject(signal.reason as Error)
  const onMessage = (outcome: unknown) => resolve(outcome as Outcome)
  const onExit = () => resolve(outOfMemory)
  const timer = setTimeout(() => resolve(tooSlow), limitMs)
  signal.addEventListener('abort', onAbort, { once: true })
  child.on('message', onMessage).on('error', reject).on('exit', onExit)
  child.send(request, (error) => error && resolve(outOfMemory))
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    child.off('message', onMessage).off('error', reject).off('exit', onExit)
  })
}

const tooSlow: Outcome = { ok: false, fault: 'time', detail: 'the calculation took too long' }
const outOfMemory: Outcome = { ok: false, fault: 'memory', detail: 'the calculation needs too much memory' }

function takeIdle(): ChildProcess | undefined {
  for (let next = idle.pop(); next; next = idle.pop()) {
    clearTimeout(next.timer)
    if (next.child.connected) return hold(next.child)
  }
  return undefined
}

/** Keeps the child process for the next calculation without keeping this process alive. */
function keep(child: ChildProcess, idleMs: number): void {
  const timer = setTimeout(() => child.kill(), idleMs).unref()
  idle.push({ child, timer })
  child.unref()
  child.channel?.unref()
}

function hold(child: ChildProcess): ChildProcess {
  child.ref()
  child.channel?.ref()
  return child
}
