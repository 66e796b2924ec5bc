import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'

/**
 * A server that takes the given time to stop. It prints a line when it is ready, when it begins to stop, and when it
 * fails.
 */
function server(stopMs: number, stopLimitMs: number, stopFails = ''): ChildProcess {
  const program = `
    import { setTimeout } from 'node:timers/promises'
    import { ParleyError } from ${JSON.stringify(path.join(import.meta.dirname, '../../wire/errors.ts'))}
    import { run } from ${JSON.stringify(path.join(import.meta.dirname, 'run.ts'))}
    const log = { info: (fields) => console.log(fields.reason), error: (_fields, text) => console.log(text) }
    const keep = setInterval(() => {}, 1000)
    const stop = async () => { await setTimeout(${stopMs}); clearInterval(keep); ${stopFails} }
    process.exitCode = await run(async () => {
      console.log('ready')
      return { [Symbol.asyncDispose]: stop }
    }, { log, stopLimitMs: ${stopLimitMs} })`
  const stdio = ['ignore', 'pipe', 'inherit'] as const
  return spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: [...stdio] })
}

/** Resolves when the line has been printed. */
async function prints(child: ChildProcess, line: string): Promise<void> {
  for (;;) {
    const [chunk] = (await once(child.stdout as never, 'data')) as [Buffer]
    if (String(chunk).includes(line)) return
  }
}

test.each(['SIGINT', 'SIGTERM'] as const)('%s stops the server and ends with 0', async (signal) => {
  const child = server(50, 10_000)
  await prints(child, 'ready')
  child.kill(signal)
  expect(await once(child, 'close')).toEqual([0, null])
})

test('a Ctrl-C that arrives twice, from the terminal and from npm, counts once', async () => {
  const child = server(300, 10_000)
  await prints(child, 'ready')
  child.kill('SIGINT')
  await prints(child, 'SIGINT')
  child.kill('SIGINT')
  expect(await once(child, 'close')).toEqual([0, null])
})

test('a second Ctrl-C after a while ends a hanging shutdown', async () => {
  const child = server(60_000, 60_000)
  await prints(child, 'ready')
  child.kill('SIGINT')
  await prints(child, 'SIGINT')
  const closed = once(child, 'close')
  const impatient = new AbortController()
  void closed.then(() => impatient.abort())
  while (!impatient.signal.aborted) {
    await wait(200, undefined, { signal: impatient.signal }).catch(() => undefined)
    child.kill('SIGINT')
  }
  expect(await closed).toEqual([1, null])
})

test('a shutdown that exceeds its time limit exits with 1', async () => {
  const child = server(60_000, 100)
  await prints(child, 'ready')
  child.kill('SIGTERM')
  expect(await once(child, 'close')).toEqual([1, null])
})

test('a shutdown that fails only because the storage is unavailable exits with 0', async () => {
  const child = server(0, 10_000, "throw new ParleyError('Unavailable')")
  await prints(child, 'ready')
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  await prints(child, 'stopped while a dependency was unavailable')
  expect(await closed).toEqual([0, null])
})

test('a shutdown that fails otherwise exits with 1', async () => {
  const child = server(0, 10_000, "throw new TypeError('a fault')")
  await prints(child, 'ready')
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  await prints(child, 'shutdown failed')
  expect(await closed).toEqual([1, null])
})
