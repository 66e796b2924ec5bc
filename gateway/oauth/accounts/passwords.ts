import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'

/** A password as it is stored. */
export const storedPassword = z.object({ salt: z.string(), hash: z.string() })
export type StoredPassword = z.infer<typeof storedPassword>

/**
 * Each computation takes about 50 ms and 32 MiB. Node computes at most four at one time, which bounds the memory.
 */
const cost = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 }
const hashBytes = 32
const saltBytes = 16

export async function hashPassword(password: string): Promise<StoredPassword> {
  const salt = randomBytes(saltBytes)
  return { salt: salt.toString('base64url'), hash: (await derive(password, salt)).toString('base64url') }
}

/** Takes the same time without a stored password, so that an attempt does not show whether the account exists. */
export async function isPassword(password: string, stored: StoredPassword | undefined): Promise<boolean> {
  const { salt, hash } = stored ?? absentPassword
  const derived = await derive(password, Buffer.from(salt, 'base64url'))
  const expected = Buffer.from(hash, 'base64url')
  const isEqual = expected.byteLength === hashBytes && timingSafeEqual(derived, expected)
  return isEqual && stored !== undefined
}

const absentPassword: StoredPassword = {
  salt: randomBytes(saltBytes).toString('base64url'),
  hash: randomBytes(hashBytes).toString('base64url'),
}

/** Case, spaces and dashes are ignored, because passwords are generated and may be typed. */
function derive(password: string, salt: Buffer): Promise<Buffer> {
  const text = password.replace(/[\s-]/g, '').toUpperCase()
  return new Promise((resolve, reject) => {
    scrypt(text, salt, hashBytes, cost, (error, derived) =>
      error === null ? resolve(derived) : reject(error),
    )
  })
}
