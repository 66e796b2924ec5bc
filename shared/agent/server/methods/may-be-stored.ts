import { ParleyError } from '@parley/wire/errors'
import type { Services } from './method.ts'

/** Whether a write that failed may have been done: a shared store may have been cut off after it; the embedded one knows. */
export function mayBeStored({ store }: Pick<Services, 'store'>, error: unknown): boolean {
  return !store.exclusive && error instanceof ParleyError && error.error === 'Unavailable'
}
