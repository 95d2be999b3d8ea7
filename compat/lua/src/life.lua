-- Plays one event: from its beginning again for as long as it fails with an error that asks for that.
local restarted = ...
local pcall, type, error = pcall, type, error

return function(thread_id)
   while true do
      local fine, result = pcall(event, thread_id)
      if fine then
         return result
      end
      if type(result) ~= "table" or result.errcode ~= 1 then
         error(result, 0)
      end
      restarted()
      local hook = sysbench.hooks.before_restart_event
      if hook then
         hook(result)
      end
   end
end
