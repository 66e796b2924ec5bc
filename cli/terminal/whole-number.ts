import { InvalidArgumentError } from 'commander'

/** Reads an option that is a number of at least 0. */
export function wholeNumber(max: number): (text: string) => number {
  return (text) => {
    if (!/^\d{1,9}$/.test(text) || Number(text) > max)
      throw new InvalidArgumentError(`It is not a whole number of at most ${max}.`)
    return Number(text)
  }
}
