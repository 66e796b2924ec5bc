import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { messageWithCause } from '@parley/relay/client/agent-errors'
import type { Finding } from './check-agent.ts'
import { addressFindings } from './check-foreign-agent.ts'

const shownMax = 10

/** Checks an MCP server as the registry of a gateway would use it, and lists its tools. No tool is called. */
export async function checkMcpServer(url: string, token: string | undefined): Promise<Finding[]> {
  const { readServer } = await import('@parley/relay/mcp/read-server')
  const { ServerRefusedCredential } = await import('@parley/relay/mcp/http-transport')
  const { anyObject } = await import('@parley/relay/mcp/tools')
  const addresses = addressFindings([url])
  if (addresses.some(({ fix }) => fix !== undefined)) return addresses
  try {
    const credential = token === undefined ? undefined : { kind: 'bearer' as const, token }
    const { info, tools } = await readServer({
      url,
      credential,
      allowed: parseAllowedHosts(new URL(url).hostname),
    })
    const withoutSchema = tools.filter(({ inputSchema }) => inputSchema === anyObject)
    const names = tools.slice(0, shownMax).map(({ id, title }) => (title === id ? id : `${id} (${title})`))
    const more = tools.length > shownMax ? `, and ${tools.length - shownMax} more` : ''
    return [
      { what: 'server', info: `${info.title ?? info.name} ${info.version}, MCP ${info.revision}` },
      ...addresses,
      tools.length === 0
        ? { what: 'tools', fix: 'The server offers no tools, so no work can be routed to it.' }
        : { what: 'tools', info: `${tools.length}: ${names.join(', ')}${more}` },
      ...(withoutSchema.length === 0
        ? []
        : [
            {
              what: 'schemas',
              note: `Accepted without a check of their fields: ${withoutSchema.map(({ id }) => id).join(', ')}`,
            },
          ]),
      ...(info.instructions === '' ? [] : [{ what: 'instructions', info: info.instructions }]),
    ]
  } catch (error) {
    if (error instanceof ServerRefusedCredential) return [...addresses, refused(token)]
    if (!(error instanceof Error)) throw error
    return [
      ...addresses,
      {
        what: 'server',
        fix: `${messageWithCause(error).replace(/\.$/, '')}. Is this the endpoint of an MCP server? It often ends with /mcp. For an A2A agent, leave out --mcp.`,
      },
    ]
  }
}

function refused(token: string | undefined): Finding {
  const what = 'credential'
  if (token !== undefined) return { what, fix: 'The server does not accept the token.' }
  return {
    what,
    note: 'The server requires a credential. Try one with --token, and set it with npx parley admit <agent> --credential @<file>.',
  }
}
