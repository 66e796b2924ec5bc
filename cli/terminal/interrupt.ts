/** Thrown when SIGINT or SIGTERM arrives while a command waits for a task. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
}

/** Provides an abort signal for the first SIGINT or SIGTERM. A second one terminates the process as usual. */
export function interruption(): { signal: AbortSignal } & Disposable {
  const controller = new AbortController()
  const names = ['SIGINT', 'SIGTERM'] as const
  const release = () => {
    for (const name of names) process.off(name, leave)
  }
  const leave = () => {
    release()
    controller.abort(new Interrupted('interrupted'))
  }
  for (const name of names) process.on(name, leave)
  return { signal: controller.signal, [Symbol.dispose]: release }
}
