-- A replica says that it lives, or that it ends, and learns of the others. Sequence of ARGV: who,
-- the fleet's time as it knows it, whether it was here before, whether it ends.
local SEEN_MS, LIFE_MS = 60000, 600000
local who, claimed, knew = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local leaves = ARGV[4] == '1'

local time = redis.call('TIME')
local now = math.max(time[1] * 1000 + math.floor(time[2] / 1000), claimed)
local packed = redis.call('GET', KEYS[1])
if leaves and not packed then return { now, 0, 0 } end
-- Missing although somebody was here before: the store has lost what it held.
local fleet = packed and cmsgpack.unpack(packed) or { at = now, emptied = knew and now or 0, members = {} }
now = math.max(now, fleet.at)
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
