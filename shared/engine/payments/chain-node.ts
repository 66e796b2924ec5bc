import type { Transport } from 'viem'

/** How often the node did not answer. What the official scheme says no to meanwhile may be good. */
export interface Node {
  failures: number
}

/** Counts them. */
export function counted(plain: Transport, node: Node): Transport {
  return (options) => {
    const made = plain(options)
    const request = async (asked: never) => {
      try {
        return (await made.request(asked)) as never
      } catch (error) {
        // What a node answers has a code.
        if (typeof (error as { code?: unknown }).code !== 'number') node.failures += 1
        throw error
      }
    }
    return { ...made, request: request as never }
  }
}
