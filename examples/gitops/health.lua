-- Health of a ResourcePool or a WorkerGroup for Argo CD.
local suspended = {Suspended = true, PoolSuspended = true, Idle = true}
local health = {status = "Progressing", message = "the operator has not seen this version yet"}
if obj.status == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return health
end
for _, condition in ipairs(obj.status.conditions or {}) do
  if condition.type == "Ready" then
    health.message = condition.reason .. ": " .. (condition.message or "")
    if condition.status == "True" then
      health.status = "Healthy"
      return health
    end
  end
end
for _, condition in ipairs(obj.status.conditions or {}) do
  if condition.type == "Progressing" and (condition.status == "Unknown" or suspended[condition.reason]) then
    -- It waits in a queue, or for a person at a debugger; or somebody has suspended it, or nobody uses it.
    health.status = "Suspended"
  elseif condition.type == "Progressing" and condition.status == "False" then
    -- The deadline has passed, or waiting cannot help.
    health.status = "Degraded"
  end
end
return health
