import { ApiError } from '../api.js'

/**
 * Runs a change. If another operator was faster (409, 412), the view is loaded again, and the error states this.
 *
 * @template T
 * @param {() => Promise<T>} change
 * @param {() => void} reload
 * @returns {Promise<T>}
 */
export async function orReload(change, reload) {
  try {
    return await change()
  } catch (error) {
    if (error instanceof ApiError && [404, 409, 412].includes(error.status)) {
      error.next = 'The page now shows the present state. Check it, then try again.'
      reload()
    }
    throw error
  }
}
