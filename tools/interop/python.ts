import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { isInstalled, type PythonEnvironment, pythonOf } from '../testing/python.ts'
import type { ClientKind, Operation } from './client.ts'

const environment = (version: string): PythonEnvironment => ({
  name: `a2a-sdk-${version}-signing`,
  packages: [`a2a-sdk[http-server,signing]==${version}`, 'uvicorn'],
  size: '75 MB',
})

/** PyPI `a2a-sdk`, Apache-2.0. */
export const a2aSdk = { v1: environment('1.3.0'), v03: environment('0.3.26') }

/** Whether suites that need both versions can run. Their titles contain `(needs a2a-sdk)`. */
export const a2aSdkIsThere = () => Object.values(a2aSdk).every(isInstalled)

const line = z.object({
  answer: z.unknown().optional(),
  error: z.object({ name: z.string(), message: z.string() }).optional(),
})

/** Runs the program as a client that answers each line of its input. */
function client(program: string, python: PythonEnvironment, binding: string): ClientKind['connect'] {
  return async (base, token = '') => {
    const file = path.join(import.meta.dirname, program)
    const child = spawn(pythonOf(python), [file, base, token, binding], { stdio: ['pipe', 'pipe', 'pipe'] })
    const exited = once(child, 'exit')
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-2000)))
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const read = async () => {
      const next = await lines.next()
      if (next.done === true) throw new Error(`the client has exited: ${errors}`)
      const { answer, error } = line.parse(JSON.parse(next.value))
      if (error === undefined) return answer
      throw Object.assign(new Error(error.message), { name: error.name })
    }
    await read()
    return {
      call: (operation, given = {}) => {
        child.stdin.write(`${JSON.stringify({ operation, given })}\n`)
        return read()
      },
      [Symbol.asyncDispose]: async () => {
        child.stdin.end()
        child.kill('SIGKILL')
        await exited
      },
    }
  }
}

const lackedBySdk03: Operation[] = ['list', 'listPush', 'deletePush']

export const pythonClients: readonly ClientKind[] = [
  {
    name: 'a2a-sdk 1.3 JSON-RPC',
    dialect: '1.0',
    lacks: [],
    connect: client('client_v1.py', a2aSdk.v1, 'JSON-RPC'),
  },
  {
    name: 'a2a-sdk 1.3 REST',
    dialect: '1.0',
    lacks: [],
    connect: client('client_v1.py', a2aSdk.v1, 'REST'),
  },
  {
    name: 'a2a-sdk 0.3.26',
    dialect: '0.3',
    lacks: lackedBySdk03,
    connect: client('client_v03.py', a2aSdk.v03, 'JSON-RPC'),
  },
]
