import type { Part, Task } from '@parley/wire/model/task'

/** The addresses of the parts of artifacts, which only the owner of the task may read. */
export const artifactTemplate = 'parley://tasks/{task_id}/artifacts/{artifact_id}/{part}'

export interface ArtifactAddress {
  taskId: string
  artifactId: string
  part: number
}

export function artifactUri(taskId: string, artifactId: string, part: number): string {
  return `parley://tasks/${encodeURIComponent(taskId)}/artifacts/${encodeURIComponent(artifactId)}/${part}`
}

/** Returns undefined if the URI is not the address of a part of an artifact. */
export function artifactAddressIn(uri: string): ArtifactAddress | undefined {
  const [, task, artifact, part] =
    /^parley:\/\/tasks\/([^/?#]{1,256})\/artifacts\/([^/?#]{1,768})\/(\d{1,6})$/.exec(uri) ?? []
  if (task === undefined || artifact === undefined) return undefined
  try {
    return { taskId: decodeURIComponent(task), artifactId: decodeURIComponent(artifact), part: Number(part) }
  } catch {
    return undefined
  }
}

export function partAt(task: Task, { artifactId, part }: ArtifactAddress): Part | undefined {
  return task.artifacts.find((one) => one.artifactId === artifactId)?.parts[part]
}
