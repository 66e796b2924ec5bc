import { z } from 'zod'
import type { Setting } from './settings.ts'

const optionalUrl = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).optional()

/** Settings for the payments of an agent with a price. */
export const paymentSettings = {
  PAYMENT_FACILITATOR_URL: {
    schema: optionalUrl,
    example: '',
    meaning: 'x402 facilitator that verifies and settles the payments of an agent with a price',
    toAgents: true,
  },
  PAYMENT_RPC_URL: {
    schema: optionalUrl,
    example: '',
    meaning:
      'JSON-RPC endpoint of the chain: for the built-in facilitator, or, with PAYMENT_FACILITATOR_URL, to look up settlements without a response; prices are checked against it',
    toAgents: true,
  },
  PAYMENT_SIGNER_KEY_FILE: {
    schema: z.string().trim().optional(),
    example: '',
    meaning: 'file (mode 0600) with the private key that pays gas for the built-in facilitator',
    toAgents: true,
  },
  PAYMENT_SANDBOX: {
    schema: z
      .enum(['yes', 'no'], { error: 'must be yes or no' })
      .transform((value) => value === 'yes')
      .optional(),
    example: '',
    meaning:
      'whether an agent with a price accepts test payments if neither facilitator is set (default yes; no with NODE_ENV=production)',
    toAgents: true,
  },
  PAYMENT_TRANSFER_CONFIRMATIONS: {
    schema: z
      .string()
      .trim()
      .regex(/^[1-9]\d{0,2}$/, 'must be a whole number from 1 to 999')
      .transform(Number)
      .default(3),
    example: '3',
    meaning:
      'confirmations that a direct transfer needs before it pays a session (prices with transfers: true)',
    toAgents: true,
  },
} as const satisfies Record<string, Setting>
