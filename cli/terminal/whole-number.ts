import { InvalidArgumentError } from 'commander'

/** Parses an option as an integer from `min` to `max`. */
export function wholeNumber(max: number, min = 0): (text: string) => number {
  return (text) => {
    if (!/^\d{1,9}$/.test(text) || Number(text) > max || Number(text) < min) {
      const range = min === 0 ? `of at most ${max}` : `from ${min} to ${max}`
      throw new InvalidArgumentError(`It is not a whole number ${range}.`)
    }
    return Number(text)
  }
}
