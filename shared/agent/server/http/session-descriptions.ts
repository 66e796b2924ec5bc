import type { OperationDescription } from '@parley/kit/http/route-description'
import { sessionAnswer } from '@parley/wire/codecs/answers/payments'
import { uuid } from '@parley/wire/codecs/parley/message'
import { wireObject } from '@parley/wire/codecs/parley/spelling'
import { hasUnsafeCharacters } from '@parley/wire/model/clean-text'
import { z } from 'zod'

/** The routes that agents without prices have as well, without the payment code. */

/** Every field is optional. By default, the session has the agent's price, with its first alternative. */
export const startBody = wireObject({
  skillId: z.string().max(128).optional(),
  taskId: uuid.optional(),
  network: z.string().max(100).optional(),
  asset: z.string().max(100).optional(),
  returnUrl: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .max(2048)
    .refine(hasNoSecrets, 'must contain no user name, password or control characters')
    .optional()
    .describe('The address of the link with which the payer returns after the payment'),
})

/** A user name could make a link look as if it led to another host. */
function hasNoSecrets(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && url.username === '' && url.password === '' && !hasUnsafeCharacters(text)
}

export const statusQuery = z.object({ wait: z.enum(['true', 'false', '1', '0', '']).default('false') })

const session = { description: 'The session', json: sessionAnswer }

export const startApi: OperationDescription = {
  summary: 'Start a payment session',
  tag: 'payments',
  access: 'agent:write',
  body: { json: startBody, required: false },
  responses: { 200: session },
  errors: ['NotFound', 'SkillNotFound', 'TaskNotFound', 'Conflict'],
}

export const statusApi: OperationDescription = {
  summary: 'Read a payment session, or wait up to 60 seconds for its payment',
  tag: 'payments',
  access: 'agent:read',
  query: statusQuery,
  responses: { 200: session },
}
