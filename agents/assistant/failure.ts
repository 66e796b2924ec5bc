/** A failure of the endpoint. The message is for the caller and contains neither the host nor the key. */
export class ChatFailure extends Error {
  override readonly name = 'ChatFailure'
}

/** Describes an unsuccessful HTTP status to the caller. */
export function failureOfStatus(status: number): ChatFailure {
  if (status === 401 || status === 403) return new ChatFailure('The model endpoint refused our key.')
  if (status === 404) return new ChatFailure('The model endpoint does not know the model or the path.')
  if (status === 413) return new ChatFailure('The conversation is too long for the model.')
  if (status === 429) return new ChatFailure('The model endpoint is busy. Try again later.')
  if (status >= 500)
    return new ChatFailure(`The model endpoint has a fault (HTTP ${status}). Try again later.`)
  return new ChatFailure(`The model endpoint did not accept the request (HTTP ${status}).`)
}

/** Wraps any error in a readable message; the original is in `cause`, for the log. */
export function endpointFailed(error: unknown, silent: boolean): ChatFailure {
  if (error instanceof ChatFailure) return error
  const said = silent
    ? 'The model endpoint did not answer in time.'
    : 'The model endpoint cannot be reached or broke off its answer.'
  return new ChatFailure(said, { cause: error })
}
