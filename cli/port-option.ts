import { InvalidArgumentError, Option } from 'commander'

export function portOption(): Option {
  return new Option('--port <port>', 'port to listen on (default: PORT, else 7400)').argParser(port)
}

function port(text: string): string {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65535)
    throw new InvalidArgumentError('It is not a port number.')
  return text
}
