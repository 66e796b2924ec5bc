import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { verifyAgentCardSignature } from '@a2a-js/sdk'
import { DefaultAgentCardResolver } from '@a2a-js/sdk/client'
import { type CardAlgorithm, cardKeysOf } from '@parley/kit/did/card-signature'
import type { JWK } from 'jose'
import { z } from 'zod'
import { type PythonEnvironment, pythonOf } from '../testing/python.ts'
import type { InteropDeployment } from './deployment.ts'
import { a2aSdk } from './python.ts'
import { type Address, baseOf, type Cell } from './run.ts'

interface SignedCard {
  /** Address of the agent, with a final slash. */
  base: string
  /** Path of the card below it. */
  path: string
  alg: CardAlgorithm
  /** The keys that sign with the algorithm, by `kid`. */
  keys: Record<string, JWK>
}

/** The verifier of an SDK. */
export interface CardVerifier {
  name: string
  /** The paths of the cards that the SDK reads. */
  paths: readonly string[]
  /** Reads the cards with the SDK's client and verifies them. Resolves with the error of each; null for a card that verifies. */
  errorsOf: (cards: readonly SignedCard[]) => Promise<(string | null)[]>
}

const cardPath = '.well-known/agent-card.json'
const algorithms: readonly CardAlgorithm[] = ['EdDSA', 'ES256']

async function errorInJs({ base, path: at, keys }: SignedCard): Promise<string | null> {
  const card = await new DefaultAgentCardResolver().resolve(base, at)
  const verify = verifyAgentCardSignature(async (kid, jku) => {
    const key = keys[kid]
    if (key === undefined || jku !== undefined) throw new Error(`there is no key ${kid}`)
    return key
  })
  // The SDK writes a message for each signature until one is valid.
  const { debug } = console
  console.debug = () => {}
  try {
    await verify(card)
    return null
  } catch (error) {
    return String(error)
  } finally {
    console.debug = debug
  }
}

const jsVerifier: CardVerifier = {
  name: 'a2a-js 1.3',
  paths: [cardPath, `a2a/v1/${cardPath}`],
  errorsOf: async (cards) => {
    const errors = []
    for (const card of cards) errors.push(await errorInJs(card))
    return errors
  },
}

const errorsIn = z.array(z.string().nullable())

const pythonVerifier = (
  name: string,
  environment: PythonEnvironment,
  paths: readonly string[],
): CardVerifier => ({
  name,
  paths,
  errorsOf: async (cards) => {
    const child = spawn(pythonOf(environment), [path.join(import.meta.dirname, 'verify_cards.py')])
    child.stdin.end(JSON.stringify(cards))
    const [answer, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
    if (answer === '') throw new Error(errors.slice(-2000))
    return errorsIn.parse(JSON.parse(answer))
  },
})

export const jsVerifiers: readonly CardVerifier[] = [jsVerifier]

export const pythonVerifiers: readonly CardVerifier[] = [
  pythonVerifier('a2a-sdk 1.3', a2aSdk.v1, [cardPath, `a2a/v1/${cardPath}`]),
  pythonVerifier('a2a-sdk 0.3.26', a2aSdk.v03, [cardPath, `a2a/v0.3/${cardPath}`]),
]

/** Verifies the card at each path with each algorithm, and that a changed card is refused because of its signature. */
export async function verifyCards(
  verifier: CardVerifier,
  deployment: InteropDeployment,
  address: Address,
): Promise<Map<string, Cell>> {
  const base = baseOf(deployment, address)
  await using stack = new AsyncDisposableStack()
  const names = []
  const cards: SignedCard[] = []
  for (const at of verifier.paths)
    for (const alg of algorithms) {
      const { card, keys } = await signedCard(base, at, alg)
      const changed = stack.use(await serve({ ...card, name: 'changed' }))
      names.push(`${at}, ${alg}`)
      cards.push({ base, path: at, alg, keys }, { base: changed.url, path: at, alg, keys })
    }
  const errors = await verifier.errorsOf(cards)
  return new Map(names.map((name, index) => [name, cellOf(errors[2 * index], errors[2 * index + 1])]))
}

function cellOf(error: string | null | undefined, ofChanged: string | null | undefined): Cell {
  if (error !== null) return { failure: error ?? 'no answer' }
  if (typeof ofChanged === 'string' && /signature/i.test(ofChanged)) return 'ok'
  return { failure: `a changed card: ${ofChanged ?? 'accepted'}` }
}

const cardIn = z.looseObject({ signatures: z.array(z.object({ protected: z.string() })) })
const header = z.strictObject({ alg: z.enum(['EdDSA', 'ES256']), typ: z.string(), kid: z.string() })

/** Reads the card, and its keys from the DID documents at the same server. */
async function signedCard(base: string, at: string, alg: CardAlgorithm) {
  const card = cardIn.parse(await (await fetch(base + at)).json())
  const headers = card.signatures
    .map((one) => header.parse(JSON.parse(Buffer.from(one.protected, 'base64url').toString())))
    .filter((one) => one.alg === alg)
  const keys: Record<string, JWK> = {}
  for (const { kid } of headers) {
    const did = kid.slice(0, kid.indexOf('#'))
    const server = base.replace(/agents\/[^/]+\/$/, '')
    const document: unknown = await (
      await fetch(`${server}did/resolve?did=${encodeURIComponent(did)}`)
    ).json()
    const key = await cardKeysOf(document, did)(kid, alg)
    if (key === undefined) throw new Error(`the document of ${did} has no key ${kid}`)
    keys[kid] = { ...key.export({ format: 'jwk' }), alg, kid }
  }
  return { card, keys }
}

async function serve(card: object) {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(card))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    url: `http://127.0.0.1:${address.port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
