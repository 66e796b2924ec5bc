import { paymentIn } from '@parley/engine/payments/x402/presented-payment'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { payableSessionAnswer, paymentRequiredAnswer } from '@parley/wire/codecs/answers/payments'
import { z } from 'zod'

/** The routes on which a session is paid. */

export const payableApi: OperationDescription = {
  summary: 'Read what a payment session costs',
  description: 'The token is that of the capture URL, which is the credential.',
  tag: 'payments',
  access: 'public',
  responses: { 200: { description: 'The session', json: payableSessionAnswer } },
}

export const payApi: OperationDescription = {
  summary: 'Pay a payment session',
  tag: 'payments',
  access: 'public',
  headers: z.object({
    'x-payment': z.string().optional().describe('A payment of x402 version 1, in base64'),
    'payment-signature': z.string().optional().describe('A payment of x402 version 2, in base64'),
  }),
  body: { json: paymentIn, required: false },
  responses: {
    200: { description: 'Paid', json: payableSessionAnswer },
    402: { description: 'The payment is missing or was refused', json: paymentRequiredAnswer },
  },
  errors: ['Conflict'],
}

const page = { 'text/html': z.string() }

export const capturePageApi: OperationDescription = {
  summary: 'The page on which a person pays',
  tag: 'payments',
  access: 'public',
  query: z.object({ refused: z.string().optional().describe('The reason why the last attempt was refused') }),
  responses: {
    200: { description: 'The page', content: page },
    404: { description: 'There is no such session', content: page },
  },
}

export const captureFormApi: OperationDescription = {
  summary: 'Send the form of the page on which a person pays',
  tag: 'payments',
  access: 'public',
  body: {
    content: {
      'application/x-www-form-urlencoded': z.object({
        with: z.literal('test-wallet').optional(),
        payment: z.string().optional(),
      }),
    },
  },
  responses: {
    303: { description: 'Back to the page', headers: { location: 'The page' } },
    404: { description: 'There is no such session', content: page },
  },
}
