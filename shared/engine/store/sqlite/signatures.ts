import { signatureHash } from '@parley/kit/database/signature-hash'
import type { Inside } from './record.ts'

/** Expired ones removed with each new one: more than come, so the table holds what is fresh and no more. */
const removedAtOnce = 4

export function takeSignature(
  { database, now }: Inside,
  did: string,
  signature: Uint8Array,
  until: number,
): Promise<boolean> {
  const hash = signatureHash(did, signature)
  const remove = `DELETE FROM seen_signatures WHERE hash IN
    (SELECT hash FROM seen_signatures WHERE until <= ? ORDER BY until LIMIT ${removedAtOnce})`
  const insert = `INSERT INTO seen_signatures (hash, until) VALUES (?1, ?2)
    ON CONFLICT (hash) DO UPDATE SET until = ?2 WHERE until <= ?3`
  return database.write(() => {
    database.statement(remove).run(now())
    return database.statement(insert).run(hash, until, now()).changes === 1
  })
}
