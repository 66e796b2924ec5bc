import { keyPairFromSeed } from '@parley/kit/did/keys'
import { partKey, signPart } from '@parley/kit/did/part-signature'
import { taskDetail } from '@parley/wire/codecs/answers/operator/tasks'
import { expect, test } from 'vitest'
import { bearer, gateway, gatewayForAllTests } from '../../testing.ts'
import { agentWith, detail } from './testing.ts'

gatewayForAllTests()

const [own, foreign] = [1, 2].map((byte) => keyPairFromSeed(Buffer.alloc(32, byte)))

function artifacts() {
  if (own === undefined || foreign === undefined) throw new Error('No keys')
  const signed = signPart({ kind: 'text', text: 'Sunny' }, own)
  const data = signPart({ kind: 'data', data: { degrees: 21 } }, own)
  const file = signPart({ kind: 'file', file: { name: 'a.txt', mimeType: 'text/plain', bytes: 'QQ==' } }, own)
  const parts = [
    signed,
    { ...signed, text: 'Rainy' },
    { kind: 'text', text: 'Cloudy' },
    signPart({ kind: 'text', text: 'Windy' }, foreign),
    data,
    file.kind === 'file'
      ? { ...file, file: { name: 'a.txt', mime_type: 'text/plain', bytes: 'QQ==' } }
      : file,
    { ...signed, metadata: { ...signed.metadata, [partKey]: 'no key' } },
  ]
  return [{ artifact_id: 'a1', name: 'result', parts }]
}

async function signaturesAt(agent: string, task: string) {
  const response = await fetch(`${gateway().addresses.public}/operator/tasks/${task}?agent=${agent}`, {
    headers: { authorization: bearer('root', 'agent:read agent:admin') },
  })
  return taskDetail.parse(await response.json()).signatures
}

test('the signature of each part of the artifacts is checked with the proven keys of the agent', async () => {
  const did = 'did:parley:weather:agent:11111111-2222-4333-8444-555555555555'
  const tasks = [detail('t1', 1, { state: 'completed', task: { id: 't1', artifacts: artifacts() } })]
  const keys = [own?.publicKeyBase58 ?? '']
  await agentWith('weather', tasks, { did, verified: true, keys })
  await agentWith('unproven', tasks, { verified: false, keys })
  const verdicts = [
    'verified',
    'crypto_mismatch',
    'unsigned',
    'another_key',
    'verified',
    'verified',
    'another_key',
  ]
  expect(await signaturesAt('weather', 't1')).toEqual(
    verdicts.map((verdict, part) => ({ artifact_id: 'a1', part, verdict })),
  )
  const unproven = (await signaturesAt('unproven', 't1')).map(({ verdict }) => verdict)
  expect(unproven).toEqual(['no_keys', 'no_keys', 'unsigned', 'no_keys', 'no_keys', 'no_keys', 'no_keys'])
})

test('artifacts in another form are not checked', async () => {
  const broken = [
    detail('t2', 2, { task: { id: 't2', artifacts: [{ artifact_id: 7, parts: 'none' }] } }),
    detail('t3', 1, { task: null }),
  ]
  await agentWith('broken', broken, { verified: true, keys: ['k'] })
  expect(await signaturesAt('broken', 't2')).toEqual([])
  expect(await signaturesAt('broken', 't3')).toEqual([])
})
