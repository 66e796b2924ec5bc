import { generateKeyPairSync, sign } from 'node:crypto'
import net from 'node:net'

/** A self-signed certificate for these names and addresses, with its key (both in PEM format). */
export function selfSigned(
  names: string[],
  options: { expired?: boolean } = {},
): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02))
  const name = sequence(der(0x31, sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from('a test')))))
  const until = options.expired === true ? '20000102000000Z' : '21000101000000Z'
  const alternatives = names.map((one) =>
    net.isIP(one) > 0 ? der(0x87, addressBytes(one)) : der(0x82, Buffer.from(one)),
  )
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    algorithm,
    name,
    sequence(der(0x18, Buffer.from('20000101000000Z')), der(0x18, Buffer.from(until))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(sequence(oid(0x55, 0x1d, 0x11), der(0x04, sequence(...alternatives))))),
  )
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]))
  const base64 = sequence(body, algorithm, signature).toString('base64')
  const lines = base64.match(/.{1,64}/g) ?? []
  return {
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  }
}

function addressBytes(address: string): Buffer {
  if (!net.isIPv4(address)) throw new Error('test certificates support IPv4 addresses only')
  return Buffer.from(address.split('.').map(Number))
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts))
}

function oid(...bytes: number[]): Buffer {
  return der(0x06, Buffer.from(bytes))
}

/** Encodes a value as tag, length and content (X.690). */
function der(tag: number, content: Buffer): Buffer {
  const { length } = content
  const head = length < 128 ? [tag, length] : [tag, 0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(head), content])
}
