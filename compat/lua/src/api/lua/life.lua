-- The loop of events, for scripts that call it from a `thread_run` of their own; without one it runs outside Lua.
local play = ...
local C = ffi.C

function thread_run(thread_id)
   while C.sb_more_events(thread_id) do
      C.sb_event_start(thread_id)
      if play(thread_id) then break end
      C.sb_event_stop(thread_id)
   end
end

return thread_run
