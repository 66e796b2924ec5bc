/** A database cannot be opened. `message` is a sentence for the operator: which one, why, what to do. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused'
}
