import { InvalidArgumentError } from 'commander'
import { UsageError } from './faults.ts'

const seconds: Record<string, number> = { m: 60, h: 3600, d: 86_400 }

/** Reads a duration, for example `90d`, `12h` or `30m`, in seconds. @throws UsageError */
export function lifetimeOf(text: string, maxSeconds = Infinity, option = '--expires'): number {
  const [, count = '', unit = ''] = /^(\d{1,5})([mhd])$/.exec(text) ?? []
  const lifetime = Number(count) * (seconds[unit] ?? 0)
  if (lifetime === 0)
    throw new UsageError(`${option} must be a duration such as 90d, 12h or 30m, not "${text}".`)
  if (lifetime > maxSeconds)
    throw new UsageError(`${option} must be 1m to ${maxSeconds / 86_400}d, not "${text}".`)
  return lifetime
}

const periodMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Reads a time, or a period that ends now, for example `2h`. @throws InvalidArgumentError */
export function sinceOf(given: string): string {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(given) ?? []
  const time = count === undefined ? Date.parse(given) : Date.now() - Number(count) * (periodMs[unit] ?? 0)
  if (!Number.isNaN(time)) return new Date(time).toISOString()
  throw new InvalidArgumentError(
    'Use a period such as 30m, 2h or 3d, or a time such as 2026-11-22T12:00:00Z.',
  )
}
