import type { RestBinding } from '../codec.ts'
import { writeError } from './errors.ts'
import { openStream } from './frames.ts'
import { basePath } from './name.ts'

/**
 * The extended card is also at the path that A2A 0.3 requires of every server whose card declares one. The card declares no
 * other REST paths.
 */
export const rest: RestBinding = {
  routes: [{ verb: 'GET', path: `${basePath}/v1/card`, operation: 'getExtendedCard', params: () => ({}) }],
  covers: () => false,
  mediaType: 'application/json',
  writeError: (error) => {
    const { code, message, data } = writeError(error)
    return { status: error.status, body: { code, message, data } }
  },
  openStream: () => openStream(null),
}
