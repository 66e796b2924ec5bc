// What a hostile agent tries at the MongoDB server of its store.
import { MongoClient } from 'mongodb'

/**
 * @param names the databases of the gateway and of another agent
 * @param received the messages of the gateway, of which one contains the URL of the agent's store
 * @returns the number of attempts and those that were not refused
 */
export async function tryDatabases(names, received) {
  const url = received.find((message) => message.store_url !== undefined).store_url
  const anonymous = url.replace(/\/\/[^@/]*@/, '//').replace(/[?].*/, '')
  const gained = []
  let attempts = 0
  const attempt = async (name, run) => {
    attempts += 1
    try {
      await run()
      gained.push(name)
    } catch {
      // Refused.
    }
  }
  for (const [who, address] of Object.entries({ 'the own user': url, 'no user': anonymous })) {
    const client = new MongoClient(address, { serverSelectionTimeoutMS: 5000 })
    for (const name of names) {
      const db = client.db(name)
      await attempt(`read ${name} with ${who}`, () => db.collection('tasks').findOne({}))
      await attempt(`write to ${name} with ${who}`, () => db.collection('intruder').insertOne({}))
      await attempt(`list ${name} with ${who}`, () => db.listCollections().toArray())
    }
    await attempt(`list the databases with ${who}`, () => client.db('admin').admin().listDatabases())
    await client.close()
  }
  return { attempts, gained }
}
