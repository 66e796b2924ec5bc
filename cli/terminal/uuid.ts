import { InvalidArgumentError } from 'commander'

/** Parses the id of a task or context. Anything but a UUID is a typing error. */
export function uuid(text: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text))
    throw new InvalidArgumentError('It is not a UUID.')
  return text
}
