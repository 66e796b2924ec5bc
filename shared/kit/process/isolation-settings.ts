import { z } from 'zod'
import type { Setting } from './settings.ts'

const uidRangeError = 'must be a range of user ids from 1000, like 20000-29999'
const limit = (fallback: number) =>
  z
    .string()
    .trim()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .default(fallback)

/** A destination of connections. */
export const egressDestination = z
  .string()
  .trim()
  .regex(/^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]{1,253}):\d{1,5}$/, 'must be host:port')

/** Settings of the gateway for the isolation and the limits of supervised agents. */
export const isolationSettings = {
  AGENT_ISOLATION: {
    schema: z
      .enum(['auto', 'user', 'namespace', 'permission', 'none'], {
        error: 'must be auto, user, namespace, permission or none',
      })
      .default('auto'),
    example: 'auto',
    meaning:
      'how supervised agents are isolated: user (a user per agent; needs root on Linux), namespace (Linux user namespaces), permission (the permission model of Node.js), none, or auto (the first of these that this machine offers); the gateway does not start if a named mode is unavailable',
  },
  AGENT_UIDS: {
    schema: z
      .string()
      .trim()
      .regex(/^\d{1,10}-\d{1,10}$/, uidRangeError)
      .transform((range) => range.split('-').map(Number))
      .pipe(z.tuple([z.number().min(1000), z.number().max(2 ** 32 - 2)], uidRangeError))
      .refine(([first, last]) => first <= last, uidRangeError)
      .default([1_900_000_000, 1_999_999_999]),
    example: '1900000000-1999999999',
    meaning:
      'user and group ids for agents in the isolation mode user; a gateway takes random ids from this range and keeps them in DATA_DIR/agent-users.json',
  },
  AGENT_MEMORY_MAX_MB: {
    schema: limit(2048),
    example: '2048',
    meaning:
      'maximum memory of an agent with its child processes, in MiB; above it the agent is restarted; 0 = unlimited',
  },
  AGENT_FILES_MAX: {
    schema: limit(4096),
    example: '4096',
    meaning: 'maximum number of open files and connections per process of an agent (Linux); 0 = unlimited',
  },
  AGENT_PROCESSES_MAX: {
    schema: limit(512),
    example: '512',
    meaning:
      'maximum number of processes and threads of an agent (Linux, isolation mode user or namespace); 0 = unlimited',
  },
  AGENT_EGRESS: {
    schema: z
      .string()
      .transform((list) => list.split(','))
      .pipe(z.array(egressDestination, 'must be a comma-separated list of host:port'))
      .optional(),
    example: '',
    meaning:
      'the only destinations (host:port, comma-separated) of agents without "egress" in their settings.json, besides the gateway and the databases (isolation mode user, with nftables); empty = unlimited',
  },
} as const satisfies Record<string, Setting>
