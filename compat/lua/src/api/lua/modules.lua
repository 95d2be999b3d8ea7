-- Adds a loader to `require`, after all others. It finds the modules that Debian's LuaJIT contains, and files in the
-- script's folder.
local folder, load_file = ...

local built_in = {
   ["table.isempty"] = "function(t) return next(t) == nil end",
   ["table.isarray"] = "function(t) for k in pairs(t) do "
      .. "if type(k) ~= 'number' or k < 1 or k % 1 ~= 0 then return false end end return true end",
   ["table.nkeys"] = "function(t) local n = 0 for _ in pairs(t) do n = n + 1 end return n end",
   ["table.clone"] = "function(t) local copy = {} for k, v in pairs(t) do copy[k] = v end return copy end"
}

table.insert(package.loaders, function(name)
   local text = built_in[name]
   if text then
      return loadstring(("table.%s = %s return table.%s"):format(name:sub(7), text, name:sub(7)))
   end
   if not folder then return nil end
   local file, missing = package.searchpath(name, folder .. "/?.lua;" .. folder .. "/?/init.lua")
   if not file then return missing end
   local chunk, message = load_file(file)
   return chunk or error(("error loading module '%s' from file '%s':\n\t%s"):format(name, file, message), 0)
end)
