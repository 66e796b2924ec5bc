import type { OperationDescription } from '@parley/kit/http/route-description'
import { cleanLine } from '@parley/wire/model/clean-text'
import { z } from 'zod'
import { artifactTypes } from './catalog-entry.ts'
import { publisherAt } from './publisher.ts'

interface McpServer {
  name: string
  /** Undefined for the server of the gateway. */
  slug?: string
  title?: string
  version: string
  description: string
}

/** Returns the card of an MCP server: its name in reverse-domain form and its address. Tools are listed by the server. */
export function serverCardOf(gatewayUrl: string, { name, slug, title, version, description }: McpServer) {
  const domain = publisherAt(gatewayUrl).domain.split('.').toReversed().join('.')
  const path = slug === undefined ? '/mcp' : `/agents/${slug}/mcp`
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name: `${domain}/${name}`,
    title: cleanLine(title ?? name, 100),
    version: cleanLine(version, 100) || '0',
    description: cleanLine(description, 100),
    websiteUrl: gatewayUrl,
    remotes: [{ type: 'streamable-http', url: `${gatewayUrl}${path}` }],
  }
}

const serverCard = z.object({
  $schema: z.string(),
  name: z.string(),
  title: z.string(),
  version: z.string(),
  description: z.string(),
  websiteUrl: z.string(),
  remotes: z.array(z.object({ type: z.literal('streamable-http'), url: z.string() })),
})

export const serverCardApi: OperationDescription = {
  summary: 'Get the card of an MCP server',
  tag: 'discovery',
  access: 'public',
  responses: {
    200: { description: 'The server card', content: { [artifactTypes.mcp]: serverCard } },
    304: { description: 'Not modified' },
  },
}
