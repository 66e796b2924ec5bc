import { hashOf, keyText } from '@parley/kit/database/keys'
import { untilDone } from '@parley/kit/database/retry'
import type { TaskFeatures } from '@parley/negotiation/score/training-example'
import type { Collection } from 'mongodb'
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
  /** `TaskFeatures` as JSON. */
  features?: string
  context?: string
  /** The record as JSON, without summary, verdicts and features. */
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
      if (found === null) return undefined
      const { body, features } = found
      return {
        ...JSON.parse(body),
        ...listedIn(found),
        ...(features !== undefined && { features: JSON.parse(features) }),
      }
    },
    listDecisions: (query: DecisionQuery) => listIn(decisions, query),
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
    featuresOfTask: async (owner: string, task: string): Promise<TaskFeatures | undefined> => {
      const of = { ...scope, task: keyText(task), anonymous: false, holder: keyText(owner) }
      const features = (await decisions.findOne(of, { sort: { at: -1 }, projection: { features: 1 } }))
        ?.features
      return features === undefined ? undefined : JSON.parse(features)
    },
    removeDecisionFeatures: async (context: string): Promise<void> => {
      const of = { ...scope, context: keyText(context), features: { $exists: true } }
      await decisions.updateMany(of, { $unset: { features: '' } })
    },
  }
}

async function listIn(
  decisions: Collection<DecisionDocument>,
  query: DecisionQuery,
): Promise<ListedDecision[]> {
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
    .project<ListedDocument>({ listed: 1, verdicts: 1 })
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
  return found.flatMap((document) => listedOf(document, bodies.get(document._id)))
}

type ListedDocument = Omit<DecisionDocument, 'body'>

/** @param body of a document of an earlier version, which may have been removed meanwhile */
function listedOf(document: ListedDocument, body = '{}'): ListedDecision[] {
  const record: Partial<DecisionRecord> = { ...JSON.parse(body), ...listedIn(document) }
  const { id, at, context: _, ...fields } = record
  return id === undefined || at === undefined ? [] : [{ id, at, ...fields }]
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
  const { summary, verdicts, features, ...body } = record
  const { id, owner, holder = '', at, task, context } = body
  return {
    _id: idOf(id),
    ...scope,
    at,
    anonymous: owner === undefined,
    holder: keyText(owner ?? holder),
    ...(task !== undefined && { task: keyText(task) }),
    ...(summary !== undefined && { listed: JSON.stringify({ id, owner, at, task, summary }) }),
    ...(verdicts !== undefined && { verdicts: JSON.stringify(verdicts) }),
    ...(features !== undefined && { features: JSON.stringify(features) }),
    ...(context !== undefined && { context: keyText(context) }),
    body: JSON.stringify(body),
  }
}
