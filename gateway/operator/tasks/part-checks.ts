import { partSignature, verifyPart } from '@parley/kit/did/part-signature'
import { artifact } from '@parley/wire/codecs/answers/parley'
import type { WirePart } from '@parley/wire/codecs/parley/shapes'
import { z } from 'zod'
import type { AgentEntry } from '../../registry/entry.ts'

export interface PartCheck {
  artifact_id: string
  part: number
  /** A verdict of `verifyPart`, `no_keys` if the agent has proven no key, or `too_large`. */
  verdict: string
}

const partsMax = 200
/** Checking a part takes about 10 ms per MiB. */
const partMaxChars = 4 * 1024 * 1024
const withArtifacts = z.object({ artifacts: z.array(artifact) })

/** Checks the signatures of the parts of a task's artifacts with the keys that its agent has proven at the registry. */
export function checkParts(
  task: unknown,
  { verified, keys = [] }: Pick<AgentEntry, 'verified' | 'keys'>,
): PartCheck[] {
  const { data } = withArtifacts.safeParse(task)
  if (data === undefined) return []
  const parts = data.artifacts.flatMap(({ artifact_id: id, parts: own }) =>
    own.map((part, at) => ({ id, part, at })),
  )
  return parts.slice(0, partsMax).map(({ id, part, at }) => {
    const verdict = verdictOf(part, verified ? keys : [])
    return { artifact_id: id, part: at, verdict }
  })
}

function verdictOf(part: WirePart, keys: readonly string[]): string {
  if (part.metadata?.[partSignature] === undefined) return 'unsigned'
  if (keys.length === 0) return 'no_keys'
  const chars =
    part.kind === 'text' ? part.text.length : part.kind === 'file' ? (part.file.bytes?.length ?? 0) : 0
  return chars > partMaxChars ? 'too_large' : verifyPart(part, keys)
}
