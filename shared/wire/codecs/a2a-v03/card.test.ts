import { expect, test } from 'vitest'
import type { AgentCard } from '../../model/card.ts'
import { a2aV03 } from './dialect.ts'

const card: AgentCard = {
  id: 'agent-1',
  did: 'did:parley:ann:agent:agent-1',
  name: 'Counter',
  description: 'Counts words',
  url: 'https://agents.example/count/',
  version: '2.1.0',
  author: 'ann',
  streaming: true,
  pushNotifications: false,
  signsArtifacts: true,
  skills: [
    {
      id: 'count',
      name: 'Count',
      description: 'Counts',
      tags: ['text'],
      inputModes: ['text/plain'],
      outputModes: ['text/plain', 'application/json'],
      documentationPath: '/agent/skills/count/documentation',
    },
    { id: 'sum', name: 'Sum', description: 'Adds', tags: [], inputModes: ['text/plain'], outputModes: [] },
  ],
}
const written = (path?: string, more: Partial<AgentCard> = {}) =>
  JSON.parse(JSON.stringify(a2aV03.writeCard({ ...card, ...more }, path)))

test('the card has the fields of A2A 0.3 only', () => {
  const url = 'https://agents.example/count/a2a/v0.3'
  expect(written('/a2a/v0.3/.well-known/agent-card.json')).toEqual({
    protocolVersion: '0.3.0',
    name: 'Counter',
    description: 'Counts words',
    version: '2.1.0',
    url,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [{ url, transport: 'JSONRPC' }],
    provider: { organization: 'ann', url: 'https://agents.example/count/' },
    capabilities: {
      streaming: true,
      pushNotifications: false,
      stateTransitionHistory: true,
      extensions: [
        {
          uri: card.did,
          description: 'The DID by which this agent is known',
          required: false,
          params: { author: 'ann', agent_name: 'Counter', agent_id: 'agent-1' },
        },
      ],
    },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: [
      {
        id: 'count',
        name: 'Count',
        description: 'Counts',
        tags: ['text'],
        inputModes: ['text/plain'],
        outputModes: ['text/plain', 'application/json'],
      },
      { id: 'sum', name: 'Sum', description: 'Adds', tags: ['sum'], inputModes: ['text/plain'] },
    ],
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'OAuth 2.0 access token' } },
    security: [{ bearer: ['agent:read', 'agent:write'] }],
    supportsAuthenticatedExtendedCard: false,
  })
})

test('the card at the common path also lists the interfaces of A2A 1.0', () => {
  const { supportedInterfaces, ...rest } = written('/.well-known/agent-card.json')
  expect(rest).toEqual(written())
  const at = 'https://agents.example/count/a2a'
  expect(supportedInterfaces).toEqual([
    { url: `${at}/v1`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: `${at}/v1`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    { url: `${at}/v0.3`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
  ])
})

test('an author adds fields to the extended card but cannot change the interfaces', () => {
  const more = {
    iconUrl: 'https://a.example/i.png',
    url: 'https://b.example',
    preferredTransport: 'GRPC',
    protocolVersion: '9',
    capabilities: {},
  }
  expect(written(undefined, { more, hasExtendedCard: true })).toEqual({
    ...written(),
    iconUrl: 'https://a.example/i.png',
    supportsAuthenticatedExtendedCard: true,
  })
})

test('an agent without skills has the default modes of text', () => {
  expect(written(undefined, { skills: [] })).toMatchObject({
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
  })
})
