import { discovery } from './areas/discovery.ts'
import type { Recorder } from './recorder.ts'
import type { World } from './world.ts'

/** Each area is one file of the record. */
export const areas: Record<string, (recorder: Recorder, world: World) => Promise<void>> = { discovery }
