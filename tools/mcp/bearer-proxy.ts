import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, request } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A server on this machine that passes every request on to `target`, with the token if the request has no credentials.
 * The conformance suite and older clients have no option for a token.
 */
export async function startBearerProxy(
  target: URL,
  token: string,
): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((incoming, outgoing) => {
    const headers = headersOf(incoming.headers)
    const { method = 'GET', url = '/' } = incoming
    const passed = request(new URL(url, target), { method, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    passed.on('error', () => outgoing.destroy())
    outgoing.on('close', () => passed.destroy())
    incoming.pipe(passed)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A listening TCP server has an address of this form.
  const { port } = server.address() as AddressInfo
  const own = `127.0.0.1:${port}`

  /** A forged Host or Origin is passed on. */
  function headersOf({ host, origin, ...given }: IncomingHttpHeaders) {
    return {
      authorization: `Bearer ${token}`,
      ...given,
      host: host === own ? target.host : host,
      ...(origin !== undefined && { origin: origin === `http://${own}` ? target.origin : origin }),
    }
  }

  return {
    url: `http://${own}${target.pathname}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await once(server.close(), 'close')
    },
  }
}
