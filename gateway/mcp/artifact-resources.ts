import type { Part, Task } from '@parley/wire/model/task'

/** The addresses of the parts of artifacts, which only the owner of the task may read. */
export const artifactTemplate = 'parley://tasks/{task_id}/artifacts/{artifact_id}/{part}{?agent}'

export interface ArtifactAddress {
  taskId: string
  artifactId: string
  part: number
  /** The slug of the agent, if it was known. The gateway may not know the agent of a task with a large result. */
  agent?: string | undefined
}

export function artifactUri({ taskId, artifactId, part, agent }: ArtifactAddress): string {
  const path = `${encodeURIComponent(taskId)}/artifacts/${encodeURIComponent(artifactId)}/${part}`
  return `parley://tasks/${path}${agent === undefined ? '' : `?agent=${encodeURIComponent(agent)}`}`
}

/** Returns undefined if the URI is not the address of a part of an artifact. */
export function artifactAddressIn(uri: string): ArtifactAddress | undefined {
  const [, task, artifact, part, agent] =
    /^parley:\/\/tasks\/([^/?#]{1,256})\/artifacts\/([^/?#]{1,768})\/(\d{1,6})(?:\?agent=([a-z0-9-]{1,63}))?$/.exec(
      uri,
    ) ?? []
  if (task === undefined || artifact === undefined) return undefined
  try {
    return {
      taskId: decodeURIComponent(task),
      artifactId: decodeURIComponent(artifact),
      part: Number(part),
      agent,
    }
  } catch {
    return undefined
  }
}

export function partAt(task: Task, { artifactId, part }: ArtifactAddress): Part | undefined {
  return task.artifacts.find((one) => one.artifactId === artifactId)?.parts[part]
}
