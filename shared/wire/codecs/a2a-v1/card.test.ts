import { expect, test } from 'vitest'
import type { AgentCard } from '../../model/card.ts'
import { a2aV1 } from './dialect.ts'
import { received } from './sample.cases.ts'

const card: AgentCard = {
  id: 'id',
  did: 'did:web:example.com',
  name: 'Calculator',
  description: 'Calculates',
  url: 'https://example.com/agents/calculator/',
  version: '1.2.3',
  author: 'Example',
  streaming: true,
  pushNotifications: false,
  signsArtifacts: true,
  skills: [
    {
      id: 'sum',
      name: 'Sum',
      description: 'Adds',
      tags: ['math'],
      inputModes: ['text/plain'],
      outputModes: ['a/b', 'c/d'],
      version: '1',
      documentationPath: '/x',
    },
    { id: 'bare', name: 'Bare', description: '', tags: [], inputModes: [], outputModes: ['a/b'] },
  ],
  more: {
    documentationUrl: 'https://example.com/docs',
    favourite: 7,
    provider: { organization: 'Org', url: 'https://org' },
  },
}

test('the card has exactly the fields of the protocol', () => {
  expect(received(a2aV1.writeCard(card))).toEqual({
    name: 'Calculator',
    description: 'Calculates',
    supportedInterfaces: [
      {
        url: 'https://example.com/agents/calculator/a2a/v1',
        protocolBinding: 'JSONRPC',
        protocolVersion: '1.0',
      },
      {
        url: 'https://example.com/agents/calculator/a2a/v1',
        protocolBinding: 'HTTP+JSON',
        protocolVersion: '1.0',
      },
      {
        url: 'https://example.com/agents/calculator/a2a/v0.3',
        protocolBinding: 'JSONRPC',
        protocolVersion: '0.3',
      },
    ],
    provider: { organization: 'Org', url: 'https://org' },
    version: '1.2.3',
    documentationUrl: 'https://example.com/docs',
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extensions: [
        {
          uri: 'did:web:example.com',
          description: 'The DID by which this agent is known',
          params: { author: 'Example', agentName: 'Calculator', agentId: 'id' },
        },
      ],
    },
    securitySchemes: {
      bearer: { httpAuthSecurityScheme: { scheme: 'Bearer', description: 'OAuth 2.0 access token' } },
    },
    securityRequirements: [{ schemes: { bearer: { list: ['agent:read', 'agent:write'] } } }],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['a/b', 'c/d'],
    skills: [
      {
        id: 'sum',
        name: 'Sum',
        description: 'Adds',
        tags: ['math'],
        inputModes: ['text/plain'],
        outputModes: ['a/b', 'c/d'],
      },
      { id: 'bare', name: 'Bare', description: '', tags: ['bare'], outputModes: ['a/b'] },
    ],
  })
})

test('an extended card is declared only if there is one, and required lists are never empty', () => {
  const { author: _author, more: _more, ...rest } = card
  const plain = received(
    a2aV1.writeCard({ ...rest, skills: [], signsArtifacts: false, hasExtendedCard: true }),
  )
  expect(plain).toMatchObject({
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
  })
  expect(plain).not.toHaveProperty('provider')
  expect(plain).not.toHaveProperty('capabilities.extensions')
})
