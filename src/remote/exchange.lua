-- One exchange between a replica and the pool of one balance. `tests/` has a model of it in Rust,
-- and a test that both answer the same. Every number is whole and below 2^53.
local SLOTS, RETRY_UNITS, UNITS_MAX = 10, 100, 4294967295
-- A lease is held against the size for longer than LEASE_MS, for which its replica may spend it.
local HELD_MS, SIZES_MS, LIFE_MS_MAX = 600, 60000, 86400000

local arg = {}
for i, text in ipairs(ARGV) do arg[i] = tonumber(text) end
local who = ARGV[1]
local claimed, sequence, life, start, debt = arg[2], arg[3], arg[4], arg[5], arg[6]
local tokens, parts, refill, interval = arg[7], arg[8], arg[9], arg[10]
local price, forgives = arg[11], arg[12] == 1
local holds, wants, returns, owes, wants_units = arg[13], arg[14], arg[15], arg[16], arg[17]
local FIRST_GIFT = 18

-- The fleet's clock: the latest time that anybody has seen.
local time = redis.call('TIME')
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), claimed)
local sizes = table.concat(ARGV, ' ', 7, 10)
-- What cannot be read is as good as gone.
local packed = redis.pcall('GET', KEYS[1])
local is_read, pool = pcall(cmsgpack.unpack, packed)
local function is_whole(pool)
  for _, name in ipairs({ 'at', 'level', 'debt', 'tokens', 'parts', 'refill', 'interval' }) do
    if type(pool[name]) ~= 'number' then return false end
  end
  return type(pool.units) == 'table' and type(pool.held) == 'table' and type(pool.seen) == 'table'
end
if not (is_read and type(pool) == 'table' and is_whole(pool)) then pool = {
  at = now, level = start, debt = debt, units = {}, held = {}, seen = {},
  sizes = sizes, tokens = tokens, parts = parts, refill = refill, interval = interval,
} end
now = math.max(now, pool.at)

-- Stale: a later call of the same replica was here before.
local mine = pool.held[who]
if mine and sequence <= mine[3] then
  return { now, 0, 1, pool.debt, pool.level, 0 }
end

-- Sizes: those first seen last, of all that somebody went by within the last minute.
for other, times in pairs(pool.seen) do
  if times[2] + SIZES_MS <= now then pool.seen[other] = nil end
end
pool.seen[sizes] = { (pool.seen[sizes] or { now })[1], now }
local newest = sizes
for other, times in pairs(pool.seen) do
  local first = pool.seen[newest][1]
  if times[1] > first or (times[1] == first and other > newest) then newest = other end
end
if newest == sizes and pool.sizes ~= sizes then
  local old, new = pool.tokens * pool.parts, tokens * parts
  pool.level = old > 0 and math.min(math.floor(pool.level / old * new), new) or 0
  pool.sizes, pool.tokens, pool.parts = sizes, tokens, parts
  pool.refill, pool.interval = refill, interval
end

-- What refills has room beside all that was leased until now, whenever it was spent since. A lease
-- that has lapsed took room until it did.
local full = pool.tokens * pool.parts
local function refill_until(time, leased)
  if pool.refill > 0 and pool.at < time then
    local refilled = math.min((time - pool.at) * pool.refill, full + pool.debt * pool.parts)
    pool.level = math.min(pool.level + refilled, math.max(full - leased * pool.parts, pool.level))
  end
  pool.at = math.max(pool.at, time)
end
local lapsed_at, all, there = pool.at, 0, 0
for _, lease in pairs(pool.held) do
  all = all + lease[1]
  if lease[2] <= now then lapsed_at = math.max(lapsed_at, lease[2]) else there = there + lease[1] end
end
refill_until(lapsed_at, all)
refill_until(now, there)

-- Leases of the others. What has lapsed is no longer held against the size.
local active, out = 1, holds
for other, lease in pairs(pool.held) do
  if lease[2] <= now or other == who then
    pool.held[other] = nil
  else
    active, out = active + 1, out + lease[1]
  end
end

-- Tokens.
pool.level = math.min(pool.level + returns * pool.parts, math.max(full - out * pool.parts, 0))
pool.debt = pool.debt + owes

-- Earned units, by the moment that their slot began, in tenths of a millisecond.
local began, units, total = {}, {}, 0
if pool.interval > 0 then
  local current = math.floor(now * 10 / pool.interval)
  local function put(at, number)
    local slot = math.min(math.floor(at / pool.interval), current)
    if slot <= current - SLOTS then return end
    local key = slot * pool.interval
    if not units[key] then table.insert(began, key) end
    units[key] = math.min((units[key] or 0) + number, UNITS_MAX)
  end
  for i = 1, #pool.units, 2 do put(pool.units[i], pool.units[i + 1]) end
  for i = FIRST_GIFT, #arg, 2 do put(arg[i], arg[i + 1]) end
  table.sort(began)
  for _, key in ipairs(began) do total = total + units[key] end
end
local function take(number)
  local taken = {}
  for _, key in ipairs(began) do
    local part = math.min(units[key], number)
    if part > 0 then
      units[key], number, total = units[key] - part, number - part, total - part
      table.insert(taken, key)
      table.insert(taken, part)
    end
  end
  return taken
end

-- What is owed is paid first, by whole retries out of the window, then by tokens.
if pool.interval > 0 then
  local paid = math.min(pool.debt, math.floor(total / RETRY_UNITS))
  take(paid * RETRY_UNITS)
  pool.debt = pool.debt - paid
end
local paid = math.min(pool.debt, math.floor(pool.level / pool.parts))
pool.level, pool.debt = pool.level - paid * pool.parts, pool.debt - paid
if forgives then pool.debt = 0 end

-- Then the replica gets what it lacks, but no more than its part.
local part = total <= 2 * RETRY_UNITS and total or math.max(math.floor(total / 2), RETRY_UNITS)
local given = take(math.min(wants_units, part))
local whole = math.floor(pool.level / pool.parts)
local fair = math.max(2 * price, math.ceil(whole / 2), math.floor(pool.tokens / active))
local granted = math.min(wants, whole, fair)
pool.level = pool.level - granted * pool.parts

pool.held[who] = { holds + granted, now + HELD_MS, sequence }
pool.units = {}
for _, key in ipairs(began) do
  if units[key] > 0 then
    table.insert(pool.units, key)
    table.insert(pool.units, units[key])
  end
end
if pool.debt > 0 and pool.refill > 0 then
  life = math.min(life + math.ceil(pool.debt * pool.parts / pool.refill), LIFE_MS_MAX)
end
redis.call('SET', KEYS[1], cmsgpack.pack(pool), 'PX', life)

local reply = { now, granted, active, pool.debt, pool.level, total }
for _, number in ipairs(given) do table.insert(reply, number) end
return reply
