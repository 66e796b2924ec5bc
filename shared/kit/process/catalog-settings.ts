import { z } from 'zod'
import type { Setting } from './settings.ts'

/** Settings for the catalog of the gateway. */
export const catalogSettings = {
  CATALOG_SOURCES: {
    schema: z
      .string()
      .transform((value) => value.split(',').map((item) => item.trim()))
      .refine(
        (items) => items.every((item) => /^https?:$/.test(URL.parse(item)?.protocol ?? '')),
        'must be a comma-separated list of http or https addresses',
      )
      .optional(),
    example: '',
    meaning:
      'servers or manifests of other publishers (ARD, AI Catalog), comma-separated, of which the entries are found by POST /search; read every hour, through the guard of registrations',
  },
} as const satisfies Record<string, Setting>
