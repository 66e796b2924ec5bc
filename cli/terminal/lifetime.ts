import { UsageError } from './faults.ts'

const seconds: Record<string, number> = { m: 60, h: 3600, d: 86_400 }

/** Reads a duration, for example `90d`, `12h` or `30m`, in seconds. @throws UsageError */
export function lifetimeOf(text: string, maxSeconds = Infinity): number {
  const [, count = '', unit = ''] = /^(\d{1,5})([mhd])$/.exec(text) ?? []
  const lifetime = Number(count) * (seconds[unit] ?? 0)
  if (lifetime === 0)
    throw new UsageError(`--expires must be a duration such as 90d, 12h or 30m, not "${text}".`)
  if (lifetime > maxSeconds)
    throw new UsageError(`--expires must be 1m to ${maxSeconds / 86_400}d, not "${text}".`)
  return lifetime
}
