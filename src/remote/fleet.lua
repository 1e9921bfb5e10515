-- A replica says that it lives, or that it ends, and learns of the others. Sequence of ARGV: who,
-- the fleet's time as it knows it, when it was here last (0: never), whether it ends.
local SEEN_MS, LIFE_MS = 60000, 600000
local who, claimed, attended = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local leaves = ARGV[4] == '1'

local time = redis.call('TIME')
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), claimed)
-- What cannot be read is as good as gone.
local packed = redis.pcall('GET', KEYS[1])
if leaves and not packed then return { now, 0, 0 } end
local is_read, fleet = pcall(cmsgpack.unpack, packed)
local is_whole = is_read and type(fleet) == 'table' and type(fleet.at) == 'number'
  and type(fleet.born) == 'number' and type(fleet.emptied) == 'number'
  and type(fleet.members) == 'table'
if not is_whole then fleet = { at = now, born = now, emptied = 0, members = {} } end
now = math.max(now, fleet.at)
-- Somebody was here before this was: the store has lost what it held.
if 0 < attended and attended < fleet.born and now < attended + LIFE_MS then
  fleet.emptied = fleet.born
end
fleet.at = now
fleet.members[who] = not leaves and now or nil
local replicas = 0
for other, seen in pairs(fleet.members) do
  if seen + SEEN_MS <= now then
    fleet.members[other] = nil
  else
    replicas = replicas + 1
  end
end
redis.call('SET', KEYS[1], cmsgpack.pack(fleet), 'PX', LIFE_MS)
return { now, replicas, fleet.emptied }
