import { fork } from 'node:child_process'
import type { AnalysisRequest, Answered } from './outcome.ts'

/** Maximum number of parallel analyses; each has its own process. */
export const concurrentAnalyses = 3

export interface AnalysisLimits {
  timeoutMs: number
  /** Heap limit of the process. */
  memoryMb: number
}

const defaults: AnalysisLimits = { timeoutMs: 60_000, memoryMb: 768 }

/** Analyses in a child process, so that no table can block or terminate this one. The child exits after its answer. */
export async function analyseApart(
  request: AnalysisRequest,
  signal: AbortSignal,
  limits: Partial<AnalysisLimits> = {},
): Promise<Answered> {
  signal.throwIfAborted()
  const { timeoutMs, memoryMb } = { ...defaults, ...limits }
  const child = fork(new URL('./analysing-process.ts', import.meta.url), {
    // The process gets no settings and no secrets.
    env: {},
    execArgv: [`--max-old-space-size=${memoryMb}`, '--no-warnings'],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  })
  const { promise, resolve, reject } = Promise.withResolvers<Answered>()
  const onAbort = () => reject(signal.reason as Error)
  const timer = setTimeout(() => resolve(tooMuch(`takes longer than ${timeoutMs / 1000} seconds`)), timeoutMs)
  signal.addEventListener('abort', onAbort, { once: true })
  child.on('message', (answered) => resolve(answered as Answered)).on('error', reject)
  child.on('exit', (code) =>
    code === 70 ? reject(new Error('the analysis failed')) : resolve(tooMuch('needs too much memory')),
  )
  child.send(request, (error) => error && reject(error))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    child.kill('SIGKILL')
  }
}

const tooMuch = (why: string): Answered => ({
  kind: 'decline',
  reason: `The analysis of this table ${why}. Please send a smaller part of it.`,
})
