import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ClientKind } from './client.ts'
import { type InteropDeployment, startDeployment } from './deployment.ts'
import { jsV1 } from './js-v1.ts'
import { jsV03 } from './js-v03.ts'
import { a2aSdkIsThere, pythonClients } from './python.ts'
import { type Address, addresses, runSteps } from './run.ts'

let deployment: InteropDeployment

beforeAll(async () => {
  deployment = await startDeployment(['calculator'])
})
afterAll(() => deployment?.[Symbol.asyncDispose]())

async function failuresOf(kind: ClientKind, address: Address): Promise<string[]> {
  const cells = await runSteps(kind, deployment, address)
  return [...cells].flatMap(([{ name }, cell]) =>
    typeof cell === 'object' ? [`${name}: ${cell.failure}`] : [],
  )
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

describe.skipIf(!a2aSdkIsThere())('clients of Python (needs a2a-sdk)', () => {
  test.each(at(pythonClients, 1))(
    'every step of $name passes at the address: $address',
    async ({ kind, address }) => {
      expect(await failuresOf(kind, address)).toEqual([])
    },
  )
})
