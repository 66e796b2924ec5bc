/** Ctrl-C or a request to end, while a command waits for a task. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
}

/** A signal that aborts at the first SIGINT or SIGTERM; a second one ends the process as usual. */
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
