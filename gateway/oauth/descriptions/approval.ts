import type { OperationDescription } from '@parley/kit/http/route-description'
import { z } from 'zod'
import { pageErrors } from './errors.ts'

const page = { 'text/html': z.string() }

export const approvalApi = {
  summary: 'The page on which a person approves an application',
  tag: 'oauth',
  access: 'public',
  responses: { 200: { description: 'The page', content: page } },
  errors: ['InsufficientPermissions'],
  ...pageErrors,
} satisfies OperationDescription

export const decisionApi: OperationDescription = {
  ...approvalApi,
  summary: 'Approve or refuse an application',
  body: {
    content: {
      'application/x-www-form-urlencoded': z.object({
        decision: z.enum(['approve', 'refuse']),
        code: z.string().optional(),
      }),
    },
  },
  responses: { 303: { description: 'Back to the application', headers: { location: 'Its address' } } },
}
