import { InvalidArgumentError } from 'commander'

/** Parses an option as an integer from 0 to `max`. */
export function wholeNumber(max: number): (text: string) => number {
  return (text) => {
    if (!/^\d{1,9}$/.test(text) || Number(text) > max)
      throw new InvalidArgumentError(`It is not a whole number of at most ${max}.`)
    return Number(text)
  }
}
