-- Health of a SchedulingProfile for Argo CD: `resource.customizations.health.placewright.dev_SchedulingProfile`.
-- The resource follows kstatus: a top-level observedGeneration, and the conditions Ready, Reconciling and Stalled.
local health = { status = "Progressing", message = "Waiting for Placewright to look at this generation" }

local status = obj.status
if status == nil or status.observedGeneration == nil or status.observedGeneration ~= obj.metadata.generation then
  return health
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function holds(kind)
  return conditions[kind] ~= nil and conditions[kind].status == "True"
end

-- Only what somebody has to edit is Degraded; what goes on by itself is Progressing.
if holds("Stalled") then
  health.status = "Degraded"
  health.message = conditions.Stalled.message
elseif holds("Reconciling") then
  health.message = conditions.Reconciling.message
elseif holds("Ready") then
  health.status = "Healthy"
  if conditions.Ready.reason == "Paused" then
    health.status = "Suspended"
  end
  health.message = conditions.Ready.message
end
return health
