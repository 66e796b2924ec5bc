import { z } from 'zod'
import type { Setting } from './settings.ts'

const yesNo = z.enum(['yes', 'no'], { error: 'must be yes or no' }).transform((value) => value === 'yes')

/** Settings of the operator API of the gateway. */
export const operatorSettings = {
  CONSOLE: {
    schema: yesNo.default(true),
    example: 'yes',
    meaning: 'whether people can use the console in a browser at /console',
  },
  OPERATOR_READS_TEXTS: {
    schema: yesNo.optional(),
    example: '',
    meaning:
      'whether operators see the texts and artifacts of other callers’ tasks; each look is audited (default yes; no with NODE_ENV=production)',
  },
  AUDIT_RETENTION_DAYS: {
    schema: z
      .string()
      .trim()
      .regex(/^[1-9]\d{0,3}$/, 'must be a whole number of days, from 1 to 9999')
      .transform(Number)
      .default(90),
    example: '90',
    meaning: 'after how many days the gateway removes entries of its audit log (GET /operator/audit)',
  },
} as const satisfies Record<string, Setting>
