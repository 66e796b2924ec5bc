import { hashOf, keyText } from '@parley/kit/database/keys'
import { untilDone } from '@parley/kit/database/retry'
import { type GatewayMongodb, gatewayScope } from '../../../store/mongodb/database.ts'
import {
  type DecisionQuery,
  type DecisionRecord,
  type ListedDecision,
  type Verdict,
  withVerdict,
} from '../routing-store.ts'

export interface DecisionDocument {
  _id: string
  agent_id: string
  at: number
  /** Absent, like `holder`, in documents of earlier versions, which are removed by age only. */
  anonymous?: boolean
  holder?: string
  task?: string
  /** The fields of `ListedDecision` as JSON, without verdicts. Absent in documents of earlier versions. */
  listed?: string
  /** A list as JSON. */
  verdicts?: string
  /** The record as JSON, without summary and verdicts. */
  body: string
}

const scope = { agent_id: gatewayScope }

/** The decisions of the routing store. */
export function mongodbDecisions(database: GatewayMongodb) {
  const decisions = database.collection<DecisionDocument>('decisions')
  const saveDecision = async (record: DecisionRecord): Promise<void> => {
    const document = decisionDocument(record)
    await decisions.replaceOne({ _id: document._id, ...scope }, document, { upsert: true })
  }
  return {
    saveDecision,
    queueDecision: saveDecision,
    findDecision: async (id: string): Promise<DecisionRecord | undefined> => {
      const found = await decisions.findOne({ _id: idOf(id), ...scope })
      return found === null ? undefined : { ...JSON.parse(found.body), ...listedIn(found) }
    },
    listDecisions: async (query: DecisionQuery): Promise<ListedDecision[]> => {
      const { owner, task, since, until, skip, limit } = query
      const found = await decisions
        .find({
          ...scope,
          at: { $gte: since, $lte: until },
          ...(owner !== undefined && { anonymous: false, holder: keyText(owner) }),
          ...(task !== undefined && { task: keyText(task) }),
        })
        .sort({ at: -1 })
        .skip(skip)
        .limit(limit)
        .project<Omit<DecisionDocument, 'body'>>({ listed: 1, verdicts: 1 })
        .toArray()
      const older = found.flatMap(({ _id, listed }) => (listed === undefined ? [_id] : []))
      const bodies = new Map(
        older.length === 0
          ? []
          : (await decisions.find({ ...scope, _id: { $in: older } }).toArray()).map(({ _id, body }) => [
              _id,
              body,
            ]),
      )
      return found.flatMap(({ _id, ...document }) => {
        const { id, at, ...fields }: Partial<ListedDecision> = {
          ...JSON.parse(bodies.get(_id) ?? '{}'),
          ...listedIn(document),
        }
        // An older document may have been removed meanwhile.
        return id === undefined || at === undefined ? [] : [{ id, at, ...fields }]
      })
    },
    /** Several operators may add verdicts concurrently: a write succeeds only over the list that was read. */
    addVerdict: (id: string, verdict: Verdict): Promise<boolean> =>
      untilDone(async () => {
        const _id = idOf(id)
        const found = await decisions.findOne({ _id, ...scope })
        if (found === null) return { isFound: false }
        const { verdicts: before } = found
        const same = { _id, ...scope, verdicts: before ?? { $exists: false } }
        const verdicts = JSON.stringify(withVerdict(listedIn(found).verdicts ?? [], verdict))
        const { matchedCount } = await decisions.updateOne(same, { $set: { verdicts } })
        return matchedCount === 1 ? { isFound: true } : undefined
      }).then(({ isFound }) => isFound),
  }
}

function listedIn({ listed, verdicts }: Pick<DecisionDocument, 'listed' | 'verdicts'>) {
  const fields: Partial<DecisionRecord> = {
    ...(listed !== undefined && JSON.parse(listed)),
    ...(verdicts !== undefined && { verdicts: JSON.parse(verdicts) }),
  }
  return fields
}

const idOf = (id: string) => `${gatewayScope}/${hashOf(id)}`

export function decisionDocument(record: DecisionRecord): DecisionDocument {
  const { summary, verdicts, ...body } = record
  const { id, owner, holder = '', at, task } = body
  return {
    _id: idOf(id),
    ...scope,
    at,
    anonymous: owner === undefined,
    holder: keyText(owner ?? holder),
    ...(task !== undefined && { task: keyText(task) }),
    ...(summary !== undefined && { listed: JSON.stringify({ id, owner, at, task, summary }) }),
    ...(verdicts !== undefined && { verdicts: JSON.stringify(verdicts) }),
    body: JSON.stringify(body),
  }
}
