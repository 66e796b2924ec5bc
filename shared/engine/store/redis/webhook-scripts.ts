/**
 * Variables in every script: the key of the config, the set of its task, and the sets of all configs and of each
 * owner.
 */
const names = `
  local configs, tasks, open, closed, sequence, owners = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
  local task, id = ARGV[1], ARGV[2]
  local member = task .. ':' .. id
  local config, ofTask = configs .. member, tasks .. task
  local function drop(gone)
    local colon = string.find(gone, ':', 1, true)
    local owner = redis.call('HGET', configs .. gone, 'owner')
    if owner then redis.call('ZREM', owners .. owner, gone) end
    redis.call('DEL', configs .. gone)
    redis.call('ZREM', tasks .. string.sub(gone, 1, colon - 1), string.sub(gone, colon + 1))
    redis.call('ZREM', open, gone)
    redis.call('ZREM', closed, gone)
  end
  local function stand(isOpen, openMs, closedMs)
    local of = redis.call('HMGET', config, 'registered', 'owner')
    local at, owner = of[1], of[2] and owners .. of[2]
    redis.call('ZREM', isOpen and closed or open, member)
    if owner and isOpen then
      redis.call('ZADD', owner, at, member)
      redis.call('PEXPIRE', owner, openMs)
    elseif owner then redis.call('ZREM', owner, member) end
    if isOpen then redis.call('ZADD', open, at, member)
    else redis.call('ZADD', closed, 'NX', redis.call('INCR', sequence), member) end
    redis.call('PEXPIRE', config, isOpen and openMs or closedMs)
    redis.call('PEXPIRE', ofTask, openMs)
  end`

/** Current time in milliseconds according to the Redis clock, which all processes share. */
const clock = `
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)`

/** Lua scripts that Redis runs atomically. */
export const scripts = {
  /**
   * Returns 1 if the config was saved, 0 if the task has too many, and -1 without capacity in total or for this
   * owner.
   */
  save: `${names}
  local perTaskMax, max = tonumber(ARGV[3]), tonumber(ARGV[4])
  local perOwnerMax, owner = tonumber(ARGV[13]), ARGV[14]
  if redis.call('EXISTS', config) == 1 then
    if ARGV[12] == '0' then return 0 end
  else
    local count = 0
    for _, other in ipairs(redis.call('ZRANGE', ofTask, 0, -1)) do
      if redis.call('EXISTS', configs .. task .. ':' .. other) == 1 then count = count + 1
      else drop(task .. ':' .. other) end
    end
    if count >= perTaskMax then return 0 end
    if redis.call('ZCARD', owners .. owner) >= perOwnerMax then
      for _, other in ipairs(redis.call('ZRANGE', owners .. owner, 0, 99)) do
        if redis.call('EXISTS', configs .. other) == 0 then redis.call('ZREM', owners .. owner, other) end
      end
      if redis.call('ZCARD', owners .. owner) >= perOwnerMax then return -1 end
    end
    while redis.call('ZCARD', open) + redis.call('ZCARD', closed) >= max do
      local oldest = redis.call('ZRANGE', closed, 0, 0)[1]
      if not oldest then return -1 end
      drop(oldest)
    end
  end
  local at = redis.call('INCR', sequence)
  redis.call('HSET', config, 'registered', at, 'owner', owner, 'body', ARGV[7], 'revision', ARGV[8],
    'settled', ARGV[9], 'open', ARGV[10], 'health', ARGV[11])
  redis.call('HDEL', config, 'resend')
  redis.call('ZADD', ofTask, at, id)
  redis.call('ZREM', closed, member)
  stand(ARGV[10] == '1', ARGV[5], ARGV[6])
  return 1`,

  /** Returns the fields of the removed config. */
  remove: `${names}
  local revision = redis.call('HGET', config, 'revision')
  if not revision or (ARGV[3] ~= '' and ARGV[3] ~= revision) then return {} end
  local fields = redis.call('HGETALL', config)
  drop(member)
  return fields`,

  /** ARGV[10] and ARGV[11] are the events to be sent again before and after this one, or empty. */
  settle: `${names}
  local there = redis.call('HMGET', config, 'revision', 'settled', 'open', 'sender', 'resend')
  local settled = tonumber(ARGV[4])
  if there[1] ~= ARGV[3] then return 0 end
  if ARGV[7] ~= '' and there[4] ~= ARGV[7] then return 0 end
  local known = tonumber(there[2])
  if settled < known or (settled == known and there[3] ~= '1') then return 0 end
  local open = ARGV[5]
  if ARGV[10] ~= '' then
    if there[5] ~= ARGV[10] then return 0 end
    if ARGV[11] == '' then redis.call('HDEL', config, 'resend')
    else redis.call('HSET', config, 'resend', ARGV[11]) end
    open = '1'
  elseif there[5] then open = '1' end
  redis.call('HSET', config, 'settled', settled, 'open', open, 'health', ARGV[6])
  stand(open == '1', ARGV[8], ARGV[9])
  return 1`,

  resend: `${names}
  local there = redis.call('HMGET', config, 'revision', 'resend')
  if there[1] ~= ARGV[3] or there[2] then return 0 end
  redis.call('HSET', config, 'resend', ARGV[4], 'open', '1')
  stand(true, ARGV[5], ARGV[6])
  return 1`,

  claim: `${names} ${clock}
  local there = redis.call('HMGET', config, 'revision', 'sender', 'claimed_until')
  if not there[1] then return 'absent' end
  if there[2] and there[2] ~= ARGV[3] and tonumber(there[3]) > now then
    redis.call('HSET', config, 'wanted', 1)
    return 'anothers'
  end
  redis.call('HSET', config, 'sender', ARGV[3], 'claimed_until', now + tonumber(ARGV[4]))
  return 'ours'`,

  renew: `${names} ${clock}
  if redis.call('HGET', config, 'sender') ~= ARGV[3] then return 0 end
  redis.call('HSET', config, 'claimed_until', now + tonumber(ARGV[4]))
  return 1`,

  /** Returns 0 if the sender keeps its claim because another process wanted the config. */
  release: `${names}
  if redis.call('HGET', config, 'sender') ~= ARGV[3] then return 1 end
  if redis.call('HDEL', config, 'wanted') == 1 then return 0 end
  redis.call('HDEL', config, 'sender', 'claimed_until')
  return 1`,

  /** Returns the next cursor, then the body, the settled number and the events to be sent again of each config. */
  open: `${clock}
  local open, configs = KEYS[1], KEYS[2]
  local limit = tonumber(ARGV[2])
  local page = redis.call('ZRANGEBYSCORE', open, '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, limit + 1)
  local found = { '' }
  for i = 1, math.min(#page, limit * 2), 2 do
    local there = redis.call('HMGET', configs .. page[i], 'body', 'settled', 'sender', 'claimed_until', 'resend')
    if not there[1] then redis.call('ZREM', open, page[i])
    elseif ARGV[3] == '0' or not there[3] or tonumber(there[4]) <= now then
      found[#found + 1] = there[1]
      found[#found + 1] = there[2]
      found[#found + 1] = there[5] or ''
    end
  end
  if #page > limit * 2 then found[1] = page[limit * 2] end
  return found`,
}
