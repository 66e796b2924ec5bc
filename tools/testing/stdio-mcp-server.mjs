// A small MCP server of 2025-11-25 on standard input and output, without a library. Its first argument names the behaviour.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const [behaviour = '', detail = ''] = process.argv.slice(2)
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const tool = (name, properties = {}) => ({
  name,
  description: `Does ${name.replaceAll('_', ' ')}`,
  inputSchema: { type: 'object', properties, required: Object.keys(properties) },
})
const text = (value) => ({ content: [{ type: 'text', text: value }] })

const tools = {
  repeat_phrase: {
    ...tool('repeat_phrase', { phrase: { type: 'string' } }),
    run: ({ phrase }) => text(phrase),
  },
  list_environment: {
    ...tool('list_environment'),
    run: () => text(Object.keys(process.env).sort().join(',')),
  },
  die: { ...tool('die'), run: () => process.exit(3) },
  never: { ...tool('never'), run: () => undefined },
  flood: { ...tool('flood'), run: () => void process.stdout.write('x'.repeat(Number(detail) || 1_000_000)) },
  garbage: {
    ...tool('garbage'),
    run: () => {
      process.stdout.write('Loading…\n{"half": \n\u0000\u001b[31mred\n')
      return text('clean')
    },
  },
  twice: {
    ...tool('twice'),
    run: (_given, id) => {
      send({ id, result: text('first') })
      send({ id, result: text('second') })
      send({ id: 'unknown', result: text('third') })
    },
  },
  process_id: {
    ...tool('process_id'),
    run: () => {
      const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
      return text(`${process.pid} ${child.pid}`)
    },
  },
}

if (behaviour === 'mute') process.stdin.resume()
else
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) continue
    if (method === 'initialize')
      send({
        id,
        result: {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'stdio', version: '1.0.0' },
        },
      })
    else if (method === 'server/discover' && behaviour === 'strict') process.exit(1)
    else if (method === 'tools/list')
      send({ id, result: { tools: Object.values(tools).map(({ run: _run, ...listed }) => listed) } })
    else if (method === 'tools/call') {
      const result = tools[params.name]?.run(params.arguments, id)
      if (result !== undefined) send({ id, result })
    } else send({ id, error: { code: -32_601, message: 'Method not found' } })
  }
