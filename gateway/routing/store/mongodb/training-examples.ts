import { hashOf, keyText } from '@parley/kit/database/keys'
import { isDuplicate } from '@parley/kit/database/mongodb/database'
import { untilDone } from '@parley/kit/database/retry'
import type { TrainingExample } from '@parley/negotiation/score/training-example'
import { Changes, type Changing, changed } from '../../../store/mongodb/changes.ts'
import { type GatewayMongodb, gatewayScope } from '../../../store/mongodb/database.ts'

export interface TrainingExampleDocument extends Changing {
  context: string
  at: number
  /** Absent in a tombstone, which propagates the removal to other gateways. */
  body?: string
}

const scope = { agent_id: gatewayScope }

/** The training examples of all gateways. */
export function mongodbTrainingExamples(database: GatewayMongodb) {
  const all = database.collection<TrainingExampleDocument>('lessons')
  const changes = new Changes<TrainingExampleDocument>(all)
  const there = { ...scope, body: { $exists: true } }
  const forget = async (filter: { context: string }) => {
    const { stamp, at } = changed()
    const mark = { $set: { stamp, at: Date.now() }, $unset: { body: '' as const }, $currentDate: at }
    await all.updateMany({ ...there, ...filter }, mark)
  }
  return {
    trainingExamples: async (): Promise<TrainingExample[]> => {
      const found = await all.find(there).sort({ at: 1 }).toArray()
      changes.saw(found)
      return found.flatMap(exampleIn)
    },
    trainingExampleChanges: async () => {
      const found = await changes.next()
      const forgotten = found.filter(({ body }) => body === undefined)
      return { learned: found.flatMap(exampleIn), forgotten: forgotten.map(({ context }) => context) }
    },
    findTrainingExample: async (context: string, agent: string): Promise<TrainingExample | undefined> => {
      const found = await all.findOne({ ...there, _id: idOf(context, agent) })
      return found === null ? undefined : exampleIn(found)[0]
    },
    saveTrainingExample: async (example: TrainingExample): Promise<void> => {
      const { stamp, at } = changed()
      const fields = {
        context: keyText(example.context),
        at: example.at,
        body: JSON.stringify(example),
        stamp,
      }
      const key = { _id: idOf(example.context, example.agent), ...scope }
      await untilDone(async () => {
        try {
          await all.updateOne(key, { $set: fields, $currentDate: at }, { upsert: true })
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
    removeTrainingExamplesOf: (context: string): Promise<void> => forget({ context: keyText(context) }),
  }
}

const idOf = (context: string, agent: string) => `${gatewayScope}/${hashOf(context, agent)}`

function exampleIn({ body }: TrainingExampleDocument): TrainingExample[] {
  if (body === undefined) return []
  const example: TrainingExample = JSON.parse(body)
  return [example]
}
