import { hashOf, keyText } from '@parley/kit/database/keys'
import type { JsonObject } from '@parley/wire/model/task'
import type { Timestamp } from '@parley/wire/model/timestamp'

/** Identifies a task permanently, because the id of a removed task may be reused, even by another owner. */
export interface TaskKey {
  id: string
  owner: string
  createdAt: Timestamp
}

/** Returns the key as one string. */
export const taskKey = (task: TaskKey) => hashOf(keyText(task.id), keyText(task.owner), task.createdAt)

/** A task's PushNotificationConfig with the progress of its deliveries (spec/webhooks.md#pushnotificationconfig). */
export interface PushConfig {
  task: TaskKey
  /** Id of the config, unique within its task. */
  id: string
  /** The id as the client wrote it, if it is not a UUID in lower case. */
  name?: string
  /** Changed by each `set`, which invalidates deliveries that began earlier. */
  revision: string
  setAt: Timestamp
  url: string
  token?: string
  authentication?: JsonObject
  /** Sent as `Authorization: {scheme} {credentials}`. */
  credentials?: { scheme: string; credentials: string }
  /** The name of the dialect of the deliveries; absent for the default one. */
  dialect?: string
  longRunning: boolean
  /** Number of the last event that was delivered or dropped; initially, of the last event before registration. */
  settled: number
  /** Whether there may be undelivered events, because the task has not ended or some events are not settled. */
  open: boolean
  /** Events to be sent again, in order and before the next undelivered event. Each range has its first and last number. */
  resend?: EventRange[]
  health: DeliveryHealth
}

/** The numbers of the first and the last event of a range. */
export type EventRange = [from: number, to: number]

/** One attempt to deliver one event. */
export interface DeliveryAttempt {
  /** Milliseconds since 1970. */
  at: number
  sequence: number
  durationMs: number
  status?: number
  error?: string
  /** The delay before the next attempt. Absent if there is none. */
  retryMs?: number
}

/** Delivery status as shown to the owner. */
export interface DeliveryHealth {
  attempts: number
  delivered: number
  /** Number of dropped events for each reason. */
  dropped: Record<string, number>
  /** HTTP status of the last response. */
  lastStatus?: number
  lastError?: string
  lastAttemptAt?: Timestamp
  /** The newest attempts, oldest first. The owner does not see them. */
  tries?: DeliveryAttempt[]
  /** The dropped events that were not delivered later, and when the last one of each range was dropped (milliseconds since 1970). */
  lost?: (readonly [...EventRange, at: number])[]
}

/** Result of delivering an event. */
export interface Settlement {
  settled: number
  open: boolean
  health: DeliveryHealth
  /** For an event that was sent again: the events that were to be sent again before and after it. */
  resend?: { before: EventRange[]; after: EventRange[] }
}

export type ConfigKey = Pick<PushConfig, 'task' | 'id'>

/** The process that delivers a config's events, or `absent` if the config does not exist. */
export type Claim = 'ours' | 'anothers' | 'absent'

/** A config with undelivered events, without secrets and large fields. */
export interface OpenPushConfig {
  task: TaskKey
  id: string
  url: string
  settled: number
  /** Whether settled events are to be sent again. */
  resends?: true
}

/** A config in a list, with the cursor that continues the list after it. */
export interface ListedPushConfig {
  config: PushConfig
  cursor: string
}

/**
 * The push configs of an agent's tasks. `settled` and the events in the task record determine which events are
 * undelivered, so committing a task is enough to schedule a delivery. The guarantees are those of `Store`. Configs
 * are removed with their task.
 */
export interface WebhookStore {
  /**
   * Saves the config, which then comes first in lists, or replaces the one with the same task and id. Returns false
   * and changes nothing if the task already has `perTaskMax` other configs.
   * @throws ParleyError Unavailable if there is no capacity
   */
  savePushConfig(config: PushConfig, perTaskMax: number): Promise<boolean>
  findPushConfig(task: TaskKey, id: string): Promise<PushConfig | undefined>
  /** Lists the newest configs first. */
  listPushConfigs(task: TaskKey): Promise<PushConfig[]>
  /** Removes and returns the config. With `revision`, only that revision is removed. */
  removePushConfig(task: TaskKey, id: string, revision?: string): Promise<PushConfig | undefined>
  /**
   * Returns false and changes nothing if the config was replaced or removed, has already reached this point, or is
   * not claimed by the given sender. A config with events to be sent again stays open.
   */
  settlePushConfig(
    config: Pick<PushConfig, 'task' | 'id' | 'revision'>,
    settlement: Settlement,
    sender?: string,
  ): Promise<boolean>
  /**
   * Schedules settled events of this revision to be sent again. Returns false and changes nothing if the config was
   * replaced or removed, or if events of it are already scheduled.
   */
  resendPushConfig(
    config: Pick<PushConfig, 'task' | 'id' | 'revision'>,
    events: readonly EventRange[],
  ): Promise<boolean>
  /** Lists the configs of all tasks, open ones and others, those registered last first. */
  listAllPushConfigs(query: { limit: number; cursor?: string | undefined }): Promise<ListedPushConfig[]>
  /**
   * Claims a config's deliveries for `forMs`, or extends the claim. If another sender holds the claim, that sender is
   * notified when it releases the config. Always returns `ours` if no other process delivers events.
   */
  claimPushConfig(key: ConfigKey, sender: string, forMs: number): Promise<Claim>
  /** Extends the claim if no other sender has had it since. If false, cached data of the config may be outdated. */
  renewPushConfig(key: ConfigKey, sender: string, forMs: number): Promise<boolean>
  /**
   * Releases the claim. Returns false and keeps the claim if another process wanted the config: check for new events,
   * then release again.
   */
  releasePushConfig(key: ConfigKey, sender: string): Promise<boolean>
  /** Lists open configs after the cursor in order of registration; with `unclaimed`, only those without a sender. */
  listOpenPushConfigs(query: { limit: number; cursor?: number; unclaimed?: boolean }): Promise<{
    items: OpenPushConfig[]
    /** Absent on the last page. */
    nextCursor?: number
  }>
}
