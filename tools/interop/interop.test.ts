import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CardVerifier, jsVerifiers, pythonVerifiers, verifyCards } from './card-verifiers.ts'
import type { ClientKind } from './client.ts'
import { type InteropDeployment, startDeployment } from './deployment.ts'
import { type ForeignServer, join, jsServers, pythonServers } from './foreign.ts'
import { type GuidePackage, runGuide } from './guide.ts'
import { jsV1 } from './js-v1.ts'
import { jsV03 } from './js-v03.ts'
import { own } from './own.ts'
import { a2aSdkIsThere, pythonClients } from './python.ts'
import { type Address, addresses, type Cell, runSteps, runStepsAt } from './run.ts'
import type { Step } from './steps.ts'

let deployment: InteropDeployment

beforeAll(async () => {
  deployment = await startDeployment(['calculator'])
})
afterAll(() => deployment?.[Symbol.asyncDispose]())

const failuresIn = (cells: Map<Step, Cell>) =>
  [...cells].flatMap(([{ name }, cell]) => (typeof cell === 'object' ? [`${name}: ${cell.failure}`] : []))

async function unverified(verifier: CardVerifier, address: Address): Promise<string[]> {
  const cells = await verifyCards(verifier, deployment, address)
  return [...cells].flatMap(([name, cell]) => (typeof cell === 'object' ? [`${name}: ${cell.failure}`] : []))
}

async function failuresOf(kind: ClientKind, address: Address): Promise<string[]> {
  return failuresIn(await runSteps(kind, deployment, address))
}

async function failuresAt(server: ForeignServer, kind: ClientKind): Promise<string[]> {
  await using agent = await server.start()
  await join(agent.url, server.slug, deployment)
  const base = `${deployment.gateway}agents/${server.slug}/`
  return failuresIn(await runStepsAt(kind, { base, token: deployment.token }))
}

/** Each client has another address. */
const at = (clients: readonly ClientKind[], first: number) =>
  clients.map((kind, index) => ({
    kind,
    name: kind.name,
    address: addresses[(first + index) % addresses.length] ?? 'gateway',
  }))

const jsClients = [jsV1('JSON-RPC'), jsV1('REST'), jsV03]

test.each(at(jsClients, 2))(
  'every step of $name passes at the address: $address',
  async ({ kind, address }) => {
    expect(await failuresOf(kind, address)).toEqual([])
  },
)

async function answersTo(name: GuidePackage): Promise<string[]> {
  const given = { token: deployment.token, text: 'calculate 6*7' }
  const bases = [deployment.gateway, `${deployment.gateway}agents/calculator/`]
  return Promise.all(bases.map((address) => runGuide(name, { ...given, address })))
}

test.each<GuidePackage>(['@a2a-js/sdk@1.3', '@a2a-js/sdk@0.3.14'])(
  'the program of the guide for %s prints the answer',
  async (name) => {
    expect(await answersTo(name)).toEqual(['6*7 = 42\n', '6*7 = 42\n'])
  },
)

/** Every verifier at every address. */
const cardsFor = (verifiers: readonly CardVerifier[]) =>
  verifiers.flatMap((verifier) => addresses.map((address) => ({ verifier, name: verifier.name, address })))

test.each(cardsFor(jsVerifiers))(
  'the verifier of $name accepts the card at the address, with each algorithm: $address',
  async ({ verifier, address }) => {
    expect(await unverified(verifier, address)).toEqual([])
  },
)

/** Each agent is called in another dialect, mostly not in that of the agent. */
const callsTo = (servers: readonly ForeignServer[], callers: readonly ClientKind[]) =>
  servers.map((server, index) => {
    const kind = callers[index] ?? own
    return { server, kind, agent: server.name, caller: kind.name }
  })

test.each(callsTo(jsServers, [jsV03, own]))(
  'every step of $caller passes for an agent of $agent behind the gateway',
  async ({ server, kind }) => {
    expect(await failuresAt(server, kind)).toEqual([])
  },
)

describe.skipIf(!a2aSdkIsThere())('clients and agents of Python (needs a2a-sdk)', () => {
  test.each(at(pythonClients, 1))(
    'every step of $name passes at the address: $address',
    async ({ kind, address }) => {
      expect(await failuresOf(kind, address)).toEqual([])
    },
  )

  test.each<GuidePackage>(['a2a-sdk==1.3.0', 'a2a-sdk==0.3.26'])(
    'the program of the guide for %s prints the answer',
    async (name) => {
      expect(await answersTo(name)).toEqual(['6*7 = 42\n', '6*7 = 42\n'])
    },
  )

  test.each(cardsFor(pythonVerifiers))(
    'the verifier of $name accepts the card at the address, with each algorithm: $address',
    async ({ verifier, address }) => {
      expect(await unverified(verifier, address)).toEqual([])
    },
  )

  test.each(callsTo(pythonServers, [jsV03, jsV1('JSON-RPC')]))(
    'every step of $caller passes for an agent of $agent behind the gateway',
    async ({ server, kind }) => {
      expect(await failuresAt(server, kind)).toEqual([])
    },
  )
})
