import { describe, expect, test } from 'vitest'
import { canonicalResource, challengeWithMetadata, resourceMetadataPath } from './protected-resource.ts'

test.each([
  ['https://gateway.example', '/.well-known/oauth-protected-resource'],
  ['https://gateway.example/', '/.well-known/oauth-protected-resource'],
  ['https://gateway.example/mcp', '/.well-known/oauth-protected-resource/mcp'],
  ['https://gateway.example/agents/poet/mcp/', '/.well-known/oauth-protected-resource/agents/poet/mcp'],
])('the metadata of %s is at %s', (resource, path) => {
  expect(resourceMetadataPath(resource)).toBe(path)
})

test.each([
  ['HTTPS://Gateway.Example:443/mcp/', 'https://gateway.example/mcp'],
  ['https://gateway.example/', 'https://gateway.example'],
  ['https://gateway.example/MCP', 'https://gateway.example/MCP'],
  ['https://gateway.example/mcp?a=B', 'https://gateway.example/mcp?a=B'],
  ['did:web:Gateway.example', 'did:web:Gateway.example'],
  ['http://', 'http:'],
])('the canonical form of %s is %s', (resource, canonical) => {
  expect(canonicalResource(resource)).toBe(canonical)
})

describe('a challenge', () => {
  const mcp = { resource: 'https://gateway.example/mcp', scope: 'agent:read agent:write' }
  const metadata = 'resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/mcp"'

  test.each([
    ['Bearer', `Bearer ${metadata}, scope="agent:read agent:write"`],
    [
      'Bearer error="invalid_token", error_description="The token has expired"',
      `Bearer error="invalid_token", error_description="The token has expired", ${metadata}, scope="agent:read agent:write"`,
    ],
    [
      'Bearer error="insufficient_scope", scope="agent:write"',
      `Bearer error="insufficient_scope", scope="agent:write", ${metadata}`,
    ],
    [
      'DPoP error="invalid_dpop_proof", algs="ES256"',
      `DPoP error="invalid_dpop_proof", algs="ES256", ${metadata}, scope="agent:read agent:write"`,
    ],
    ['Basic realm="clients"', 'Basic realm="clients"'],
    [
      'Bearer resource_metadata="https://agent.example/m"',
      'Bearer resource_metadata="https://agent.example/m"',
    ],
  ])('%s names the metadata and the scopes', (challenge, expected) => {
    expect(challengeWithMetadata(challenge, mcp)).toBe(expected)
  })
})
