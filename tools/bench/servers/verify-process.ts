/** Prints the CPU time of verification in microseconds, for a signature check and for a signed request. */
import { createPublicKey, verify } from 'node:crypto'
import { readSignature, signingText, signRequest, verifySigned } from '@parley/kit/did/signature'
import { benchKey } from '../support/tokens.ts'

const body = process.argv[2] ?? '{}'
const did = 'did:parley:bench:agent:0000'
const timestamp = 1_700_000_000
const text = signRequest({ did, key: benchKey, body, timestamp })['x-did-signature']
const signature = readSignature(text) as Uint8Array
const message = Buffer.from(signingText({ did, body, timestamp }))
const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), benchKey.publicKey])
const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })

function cpuMicros(run: () => boolean, times = 4000): number {
  const all = (count: number) => {
    for (let i = 0; i < count; i += 1) if (!run()) throw new Error('the signature does not verify')
  }
  all(times / 4)
  const before = process.cpuUsage()
  all(times)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / times
}

const bare = cpuMicros(() => verify(null, message, key, signature))
const request = cpuMicros(() =>
  verifySigned({ did, body, timestamp }, readSignature(text) as Uint8Array, benchKey.publicKey),
)
process.stdout.write(JSON.stringify({ bare, request }))
