import { InvalidArgumentError } from 'commander'

/** Ids of tasks and contexts are UUIDs; another word there is a slip of the hand. */
export function uuid(text: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text))
    throw new InvalidArgumentError('It is not a UUID.')
  return text
}
