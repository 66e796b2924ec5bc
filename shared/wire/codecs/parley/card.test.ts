import { expect, test } from 'vitest'
import type { AgentCard } from '../../model/card.ts'
import { cardAt, cardOut } from './card.ts'

const card: AgentCard = {
  id: 'agent-1',
  name: 'Counter',
  description: 'Counts words',
  url: 'https://agents.example/count',
  version: '2.1.0',
  streaming: true,
  pushNotifications: false,
  signsArtifacts: false,
  skills: [],
}
const written = JSON.parse(JSON.stringify(cardOut(card)))
const addressesAt = (url: string) => ({
  url,
  preferredTransport: 'JSONRPC',
  additionalInterfaces: [{ url: `${url}/a2a/v0.3`, transport: 'JSONRPC' }],
  supportedInterfaces: [
    { url: `${url}/a2a/v1`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: `${url}/a2a/v1`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    { url: `${url}/a2a/v0.3`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
  ],
})

test('A2A clients that read this card find the interface of their version', () => {
  expect(written).toMatchObject(addressesAt('https://agents.example/count'))
})

test('at a gateway, every address in the card is one of the gateway', () => {
  const url = 'https://gateway.example/agents/counter'
  expect(cardAt(written, url)).toEqual({ ...written, ...addressesAt(url) })
  const hostile = {
    name: 'x',
    url: 'https://evil.example',
    additionalInterfaces: 'https://evil.example',
    supportedInterfaces: [{ url: 'https://evil.example', protocolBinding: 'GRPC' }],
  }
  expect(JSON.stringify(cardAt(hostile, url))).not.toContain('evil')
})

test('a card without interfaces, of an earlier version, stays without them at a gateway', () => {
  expect(cardAt({ name: 'x', url: 'http://10.0.0.1' }, 'https://gateway.example/agents/x')).toEqual({
    name: 'x',
    url: 'https://gateway.example/agents/x',
  })
})
