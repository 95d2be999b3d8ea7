-- Functions of `sysbench.cmdline`, which the host and scripts call.
local cmdline, print_options, read_options = ...

local function raise_if(message)
   if message then error(message, 0) end
end

function cmdline.print_test_options()
   raise_if(print_options())
end

function cmdline.read_cmdline_options()
   raise_if(read_options())
   return true
end

local function find_command(name)
   local commands = cmdline.commands
   return type(commands) == "table" and commands[name] or nil
end

function cmdline.command_defined(name)
   local command = find_command(name)
   return command ~= nil and command[1] ~= nil
end

function cmdline.command_parallel(name)
   local command = find_command(name)
   return command ~= nil and command[2] == cmdline.PARALLEL_COMMAND
end

-- A command that returns nothing has succeeded.
function cmdline.call_command(name)
   if not cmdline.command_defined(name) then return false end
   local result = cmdline.commands[name][1]()
   return result == nil or result ~= false
end
