import { hashOf, keyText } from '@parley/kit/database/keys'
import { isDuplicate } from '@parley/kit/database/mongodb/database'
import { untilDone } from '@parley/kit/database/retry'
import type { TrainingExample } from '@parley/negotiation/score/training-example'
import type { Collection } from 'mongodb'
import { Changes, type Changing, changed } from '../../../store/mongodb/changes.ts'
import { type GatewayMongodb, gatewayScope } from '../../../store/mongodb/database.ts'
import type { TrainingExampleChanges } from '../routing-store.ts'

export interface TrainingExampleDocument extends Changing {
  context: string
  at: number
  /** Absent, like `removed_with`, in documents of earlier versions. */
  agent?: string
  removed_with?: string
  /** Absent in a tombstone, which propagates the removal to other gateways. */
  body?: string
  /** In a tombstone of `removeTrainingExamplesOfAgent`: the id of the agent. */
  forgotten_of?: string
}

const scope = { agent_id: gatewayScope }
const there = { ...scope, body: { $exists: true } }
/** Number of examples that one write removes. */
const forgottenTogether = 500

/** The training examples of all gateways. */
export function mongodbTrainingExamples(database: GatewayMongodb) {
  const all = database.collection<TrainingExampleDocument>('lessons')
  const changes = new Changes<TrainingExampleDocument>(all)
  const ofAgent = examplesOfAgent(all)
  return {
    trainingExamples: async (): Promise<TrainingExample[]> => {
      const found = await all.find(there).sort({ at: 1 }).toArray()
      changes.saw(found)
      return found.flatMap(exampleIn)
    },
    trainingExampleChanges: async (): Promise<TrainingExampleChanges> => {
      const found = await changes.next()
      const removed = found.filter(({ body }) => body === undefined)
      const ofContexts = removed.filter(({ forgotten_of }) => forgotten_of === undefined)
      return {
        learned: found.flatMap(exampleIn),
        forgotten: ofContexts.map(({ context }) => context),
        forgottenOf: [...new Set(removed.flatMap(({ forgotten_of = [] }) => forgotten_of))],
      }
    },
    trainingExamplesOf: async (agent: string): Promise<TrainingExample[]> =>
      (await ofAgent(agent)).map(({ example }) => example),
    findTrainingExample: async (context: string, agent: string): Promise<TrainingExample | undefined> => {
      const found = await all.findOne({ ...there, _id: idOf(context, agent) })
      return found === null ? undefined : exampleIn(found)[0]
    },
    saveTrainingExample: async (example: TrainingExample): Promise<void> => {
      const { fields, absent, at } = changeTo(example)
      const key = { _id: idOf(example.context, example.agent), ...scope }
      await untilDone(async () => {
        try {
          await all.updateOne(key, { $set: fields, $unset: absent, $currentDate: at }, { upsert: true })
          return true
        } catch (error) {
          if (isDuplicate(error)) return undefined
          throw error
        }
      })
    },
    /** Leaves no tombstone, because every gateway itself drops examples beyond the limit per agent. */
    removeTrainingExample: async (context: string, agent: string): Promise<void> =>
      void (await all.deleteOne({ _id: idOf(context, agent), ...scope })),
    ...removalsIn(all),
  }
}

/** Removals leave tombstones. */
function removalsIn(all: Collection<TrainingExampleDocument>) {
  const ofAgent = examplesOfAgent(all)
  const forget = async (ids: string[], forgottenOf?: string) => {
    const { stamp, at } = changed()
    const fields = {
      stamp,
      at: Date.now(),
      ...(forgottenOf !== undefined && { forgotten_of: forgottenOf }),
    }
    const mark = { $set: fields, $unset: { body: '' as const }, $currentDate: at }
    for (let from = 0; from < ids.length; from += forgottenTogether)
      await all.updateMany({ ...there, _id: { $in: ids.slice(from, from + forgottenTogether) } }, mark)
  }
  return {
    removeTrainingExamplesOf: async (context: string): Promise<string[]> => {
      const key = keyText(context)
      const found = await all
        .find({ ...there, $or: [{ context: key }, { removed_with: key }] })
        .project<Pick<TrainingExampleDocument, '_id' | 'context'>>({ context: 1 })
        .toArray()
      await forget(found.map(({ _id }) => _id))
      return [...new Set(found.map((document) => document.context))]
    },
    removeTrainingExamplesOfAgent: async (agent: string, caller?: string): Promise<number> => {
      const found = await ofAgent(agent)
      const removed = found.filter(({ example }) => caller === undefined || example.caller === caller)
      await forget(
        removed.map(({ id }) => id),
        agent,
      )
      return removed.length
    },
  }
}

/** Finds the examples of one agent with the ids of their documents, oldest first. */
function examplesOfAgent(all: Collection<TrainingExampleDocument>) {
  return async (agent: string) => {
    const known = [{ agent: keyText(agent) }, { agent: { $exists: false } }]
    const found = await all
      .find({ ...there, $or: known })
      .sort({ at: 1 })
      .toArray()
    return found.flatMap((document) =>
      exampleIn(document).flatMap((example) =>
        example.agent === agent ? [{ id: document._id, example }] : [],
      ),
    )
  }
}

/** The fields to set and to remove when the example is saved. */
function changeTo(example: TrainingExample) {
  const { stamp, at } = changed()
  const { removedWith } = example
  const fields = {
    context: keyText(example.context),
    agent: keyText(example.agent),
    at: example.at,
    body: JSON.stringify(example),
    stamp,
    ...(removedWith !== undefined && { removed_with: keyText(removedWith) }),
  }
  const absent = {
    forgotten_of: '' as const,
    ...(removedWith === undefined && { removed_with: '' as const }),
  }
  return { fields, absent, at }
}

const idOf = (context: string, agent: string) => `${gatewayScope}/${hashOf(context, agent)}`

function exampleIn({ body }: TrainingExampleDocument): TrainingExample[] {
  if (body === undefined) return []
  const example: TrainingExample = JSON.parse(body)
  return [example]
}
