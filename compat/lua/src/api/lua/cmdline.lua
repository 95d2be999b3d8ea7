-- Functions of `sysbench.cmdline`, for the host and for scripts.
local cmdline, print_options, read_options = ...

local function succeed(message)
   if message then error(message, 0) end
end

function cmdline.print_test_options()
   succeed(print_options())
end

function cmdline.read_cmdline_options()
   succeed(read_options())
   return true
end

local function command_of(name)
   local commands = cmdline.commands
   return type(commands) == "table" and commands[name] or nil
end

function cmdline.command_defined(name)
   local command = command_of(name)
   return command ~= nil and command[1] ~= nil
end

function cmdline.command_parallel(name)
   local command = command_of(name)
   return command ~= nil and command[2] == cmdline.PARALLEL_COMMAND
end

-- A command that returns nothing has succeeded.
function cmdline.call_command(name)
   if not cmdline.command_defined(name) then return false end
   local result = cmdline.commands[name][1]()
   return result == nil or result ~= false
end
