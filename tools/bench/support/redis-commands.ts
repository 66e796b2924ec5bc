import { Redis } from 'ioredis'

/** How often each command was given since the server started, those within scripts included. */
export async function redisCommands(url: string): Promise<Record<string, number>> {
  const redis = new Redis(url)
  try {
    const said = await redis.info('commandstats')
    const found = said.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)
    return Object.fromEntries([...found].map(([, name, calls]) => [name, Number(calls)]))
  } finally {
    redis.disconnect()
  }
}
