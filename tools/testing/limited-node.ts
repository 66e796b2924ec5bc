import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Call {
  method: string
  id: number
  params: [{ fromBlock: string; toBlock: string }]
}

/** A proxy in front of the node of a chain that limits requests for logs, as public nodes do. */
export interface LimitedNode extends AsyncDisposable {
  url: string
  /** Blocks in one request for logs. A larger range gets a JSON-RPC error. */
  blocksMax: number
  /** The HTTP status of every response. 200: the node responds. */
  status: number
  /** First and last block of each request for logs that the node answered. */
  ranges: [from: number, to: number][]
}

/** Starts a proxy for the node at this URL. */
export async function startLimitedNode(nodeUrl: string, blocksMax: number): Promise<LimitedNode> {
  const server = createServer((request, response) => {
    textOf(request)
      .then(answer)
      .then(({ status, body }) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(body),
      )
      .catch(() => response.destroy())
  })
  const answer = async (body: string): Promise<{ status: number; body: string }> => {
    if (node.status !== 200) return { status: node.status, body: '{}' }
    const { method, id, params } = JSON.parse(body) as Call
    if (method === 'eth_getLogs') {
      const [from, to] = [Number(params[0].fromBlock), Number(params[0].toBlock)]
      const error = {
        code: -32_005,
        message: `at most ${node.blocksMax} blocks, see https://node.example/key`,
      }
      if (to - from >= node.blocksMax)
        return { status: 200, body: JSON.stringify({ jsonrpc: '2.0', id, error }) }
      node.ranges.push([from, to])
    }
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(nodeUrl, { method: 'POST', headers, body })
    return { status: response.status, body: await response.text() }
  }
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const node: LimitedNode = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    blocksMax,
    status: 200,
    ranges: [],
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
  return node
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}
