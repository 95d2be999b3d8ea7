-- Runs events. dbdyno itself calls `run_event` in a loop; the default `thread_run` is for scripts that call it from their
-- own `thread_run`.
local restart = ...
local C, pcall, type, error = ffi.C, pcall, type, error

-- Runs one event, and repeats it while it fails with RESTART_EVENT.
local function run_event(thread_id)
   while true do
      local succeeded, result = pcall(event, thread_id)
      if succeeded then
         return result
      end
      if type(result) ~= "table" or result.errcode ~= 1 then
         error(result, 0)
      end
      restart()
      local hook = sysbench.hooks.before_restart_event
      if hook then
         hook(result)
      end
   end
end

function thread_run(thread_id)
   while C.sb_more_events(thread_id) do
      C.sb_event_start(thread_id)
      if run_event(thread_id) then break end
      C.sb_event_stop(thread_id)
   end
end

return run_event, thread_run
