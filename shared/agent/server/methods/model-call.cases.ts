import { AnswerBudget } from '@parley/kit/process/answer-budget'
import { makeLog } from '@parley/kit/process/log'
import type { Calls, Operation } from '@parley/wire/model/operation'
import type { TestAgent } from '../../testing.ts'
import type { Answer, Call } from './method.ts'
import { methods } from './table.ts'

/** The fields of a call that a test may set. */
export interface ModelCall {
  /** Default `alice`. */
  owner?: string
  headers?: Record<string, string>
  signal?: AbortSignal
  answers?: AnswerBudget
}

/** Runs an operation with params of the model, for options that not every dialect has. */
export async function callModel<O extends Operation>(
  agent: TestAgent,
  operation: O,
  params: Calls[O]['params'],
  { owner = 'alice', headers = {}, signal, answers }: ModelCall = {},
): Promise<Answer<Calls[O]['result']>> {
  const budget = answers ?? new AnswerBudget({ callerMaxBytes: 2 ** 26, processMaxBytes: 2 ** 28 })
  const claim = budget.open(owner)
  const call: Call<Calls[O]['params']> = {
    caller: { id: owner, subject: owner, scopes: new Set(['agent:read', 'agent:write']) },
    params: () => params,
    headers: { authorization: 'Bearer t', ...headers },
    extensions: [],
    baseUrl: () => agent.url,
    bodyHash: () => JSON.stringify(params),
    takeSignature: async () => {},
    reserve: (bytes) => claim.reserve(bytes),
    openClaim: () => budget.open(owner),
    signal: () => signal ?? new AbortController().signal,
    log: () => makeLog({ level: 'silent', name: 'test' }),
  }
  return methods[operation].run(agent.app.services, call)
}

/** Like `callModel`, for an operation that answers with a result. */
export async function resultOf<O extends Operation>(
  ...given: Parameters<typeof callModel<O>>
): Promise<Calls[O]['result']> {
  const answer = await callModel(...given)
  if ('result' in answer) return answer.result
  throw new Error('the operation streams')
}
