import { z } from 'zod'
import type { Setting } from './settings.ts'

const milliseconds = (fallback: number) =>
  z
    .string()
    .trim()
    .regex(/^\d{1,9}$/, 'must be a whole number of milliseconds')
    .transform(Number)
    .default(fallback)

/** Settings of the MCP server of the gateway. */
export const mcpSettings = {
  MCP_TASK_AFTER_MS: {
    schema: milliseconds(2000),
    example: '2000',
    meaning: 'time after which an MCP client that supports tasks receives a task instead of the result',
  },
  MCP_ANSWER_AFTER_MS: {
    schema: milliseconds(50_000),
    example: '50000',
    meaning: 'time after which other MCP clients receive the ID of the task instead of the result',
  },
} as const satisfies Record<string, Setting>
