import type { z } from 'zod'
import { ParleyError } from '../errors.ts'
import type { Ids } from '../model/ids.ts'
import type { Calls, Operation } from '../model/operation.ts'
import type { Codec } from './codec.ts'

/** A method of A2A: its name, and how its params are read and its result is written. */
export interface MethodRow<O extends Operation> {
  method: string
  /** The schema with which `params` parses. */
  schema: z.ZodType
  /** @throws ParleyError InvalidParams, TaskNotFound */
  params: (given: Record<string, unknown>, ids: Ids) => Calls[O]['params']
  result: (result: Calls[O]['result']) => unknown
}

/** Operations that the protocol lacks have no row. */
export type MethodRows = { readonly [O in Operation]?: MethodRow<O> }

/** @param protocol the name of the protocol in error messages */
export function methodTable(
  rows: MethodRows,
  protocol: string,
): Pick<Codec, 'methods' | 'methodOf' | 'paramsSchema' | 'readParams' | 'writeResult'> {
  const rowOf = <O extends Operation>(operation: O): MethodRow<O> => {
    const row: MethodRow<O> | undefined = rows[operation]
    if (row !== undefined) return row
    throw new ParleyError('UnsupportedOperation', { message: `${protocol} has no method for ${operation}` })
  }
  const methods: [string, { operation: Operation }][] = []
  let operation: Operation
  for (operation in rows) methods.push([rowOf(operation).method, { operation }])
  return {
    methods: new Map(methods),
    methodOf: (operation) => rowOf(operation).method,
    paramsSchema: (operation) => rowOf(operation).schema,
    readParams: (operation, given, ids) => rowOf(operation).params(given, ids),
    writeResult: (operation, result) => ({ json: rowOf(operation).result(result) }),
  }
}

/** The result writer of streaming methods, which have frames instead. */
export function streams(): never {
  throw new Error('A stream has no result')
}
