import path from 'node:path'
import { expect, test } from 'vitest'
import { databaseNameFor, withDatabase } from './agent-url.ts'

test.each([
  ['parley', 'calculator', /^parley_calculator_[0-9a-f]{12}$/],
  ['p'.repeat(63), 'Ünïcode agent/with "odd" $names.', /^p{31}_-n-code-agent-with_[0-9a-f]{12}$/],
  ['bäse', 'x', /^b-se_x_[0-9a-f]{12}$/],
])('the database of %s for the agent %s has a legal name', (base, name, pattern) => {
  const made = databaseNameFor(base, { name, agentId: 'id' })
  expect(made).toMatch(pattern)
  expect(Buffer.byteLength(made)).toBeLessThanOrEqual(63)
  expect(databaseNameFor(base, { name, agentId: 'other' })).not.toBe(made)
  expect(databaseNameFor(`${base}x`, { name, agentId: 'id' })).not.toBe(made)
})

const user = { name: 'parley-1', password: 'a/b' }

test.each([
  ['mongodb://h/parley', null, 'mongodb://h/own'],
  ['mongodb://h', user, 'mongodb://parley-1:a%2Fb@h/own?authSource=own'],
  [
    'mongodb://u:p@a:1,b:2/parley?replicaSet=rs&tls=true&authSource=admin&authMechanism=MONGODB-X509&tlsCertificateKeyFile=/f',
    user,
    'mongodb://parley-1:a%2Fb@a:1,b:2/own?replicaSet=rs&tls=true&authSource=own',
  ],
  [
    'mongodb+srv://u:p@cluster.example.com/?retryWrites=true',
    user,
    'mongodb+srv://parley-1:a%2Fb@cluster.example.com/own?retryWrites=true&authSource=own',
  ],
  ['mongodb://u:p@h/parley?AuthSource=x&tls=true', null, 'mongodb://h/own?tls=true'],
  [
    'mongodb://h/parley?tlsCAFile=certificates%2Fca.pem',
    null,
    `mongodb://h/own?tlsCAFile=${encodeURIComponent(path.resolve('certificates/ca.pem'))}`,
  ],
])('from %s, the URL of another user keeps the hosts and options', (url, as, expected) => {
  expect(withDatabase(url, { database: 'own', authSource: 'own', as })).toBe(expected)
})

test('the URL of the gateway’s user keeps its credentials and their source', () => {
  const change = (url: string, authSource?: string) => withDatabase(url, { database: 'own', authSource })
  expect(change('mongodb://u:p@h/parley?tls=true', 'parley')).toBe(
    'mongodb://u:p@h/own?tls=true&authSource=parley',
  )
  expect(change('mongodb://u:p@h/parley?authSource=admin', 'admin')).toBe(
    'mongodb://u:p@h/own?authSource=admin',
  )
  expect(change('mongodb://h/parley?tls=true')).toBe('mongodb://h/own?tls=true')
})
