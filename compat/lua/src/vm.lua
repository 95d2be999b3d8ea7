-- Makes globals for one user of a shared state: what the state's own would be, if there were no other user.
local pristine, fresh_random, load = ...
local error, type, tostring, tonumber, pairs, ipairs = error, type, tostring, tonumber, pairs, ipairs
local setmetatable, setfenv, select, newproxy, pcall = setmetatable, setfenv, select, newproxy, pcall
local concat, string, io, ffi, loadfile = table.concat, string, io, ffi, loadfile
local searchpath, loadlib, seeall, preload, config =
   package.searchpath, package.loadlib, package.seeall, package.preload, package.config
local loading = newproxy()

-- A file is read once for all users; one that cannot be has `loadfile` say why.
local texts = {}
local function load_file(path)
   local text = texts[path]
   if not text then
      local file = io.open(path, "rb")
      text = file and file:read("*a")
      if file then file:close() end
      if not text then return loadfile(path) end
      texts[path] = text
   end
   return load("@" .. path, text)
end

local function copy(from)
   local to = {}
   for name, value in pairs(from) do to[name] = value end
   return to
end

local function named(name)
   if type(name) == "number" then return tostring(name) end
   if type(name) == "string" then return name end
   error(("bad argument #1 to 'require' (string expected, got %s)"):format(name == nil and "no value" or type(name)), 3)
end

-- The usual places of modules, in their order.
local function loaders(package, globals)
   local function path(field)
      local found = package[field]
      if type(found) ~= "string" then error(("'package.%s' must be a string"):format(field), 0) end
      return found
   end
   local function failed(name, file, message)
      error(("error loading module '%s' from file '%s':\n\t%s"):format(name, file, message), 0)
   end
   local function preloaded(name)
      local found = package.preload[name]
      if found == nil then return ("\n\tno field package.preload['%s']"):format(name) end
      local field = preload[name] == found and name:match("^table%.(.+)$")
      if not field then return found end
      -- LuaJIT's own, which belong into the table too.
      return function(...)
         local made = found(...)
         globals.table[field] = made
         return made
      end
   end
   local function in_lua(name)
      local file, missing = searchpath(name, path("path"))
      if not file then return missing end
      local chunk, message = load_file(file)
      return chunk or failed(name, file, message)
   end
   local function opening(name)
      return "luaopen_" .. (name:match("^.-%-(.*)$") or name):gsub("%.", "_")
   end
   local function in_c(name)
      local file, missing = searchpath(name, path("cpath"))
      if not file then return missing end
      local open, message = loadlib(file, opening(name))
      return open or failed(name, file, message)
   end
   local function in_c_root(name)
      local root = name:match("^(.-)%.")
      if not root then return nil end
      local file, missing = searchpath(root, path("cpath"))
      if not file then return missing end
      local open, message, what = loadlib(file, opening(name))
      if open then return open end
      if what ~= "init" then failed(name, file, message) end
      return ("\n\tno module '%s' in file '%s'"):format(name, file)
   end
   return { preloaded, in_lua, in_c, in_c_root }
end

local function requiring(package)
   return function(name)
      name = named(name)
      local loaded = package.loaded
      local found = loaded[name]
      if found then
         if found == loading then error(("loop or previous error loading module '%s'"):format(name), 2) end
         return found
      end
      if type(package.loaders) ~= "table" then error("'package.loaders' must be a table", 2) end
      local missing, loader = {}, nil
      for place = 1, math.huge do
         local look = package.loaders[place]
         if look == nil then error(("module '%s' not found:%s"):format(name, concat(missing)), 2) end
         loader = look(name)
         if type(loader) == "function" then break end
         if type(loader) == "string" then missing[#missing + 1] = loader end
      end
      loaded[name] = loading
      local made = loader(name)
      if made ~= nil then loaded[name] = made end
      if loaded[name] == loading then loaded[name] = true end
      return loaded[name]
   end
end

-- A module of the old kind: a table that is the environment of whoever calls this.
local function moduling(package, globals)
   return function(name, ...)
      local made = package.loaded[name]
      if type(made) ~= "table" then
         made = globals
         for part in name:gmatch("[^.]+") do
            local inner = made[part]
            if inner == nil then
               inner = {}
               made[part] = inner
            elseif type(inner) ~= "table" then
               error(("name conflict for module '%s'"):format(name), 2)
            end
            made = inner
         end
         package.loaded[name] = made
      end
      if made._NAME == nil then
         made._M, made._NAME, made._PACKAGE = made, name, name:match("^(.*%.)") or ""
      end
      setfenv(2, made)
      for place = 1, select("#", ...) do
         (select(place, ...))(made)
      end
   end
end

-- Files that a user reads and writes by default, as soon as it chooses some.
local function choosing(own)
   local function default(name, mode, standard)
      local usual, chosen = io[name], nil
      return function(file)
         if file == nil then return chosen or usual() end
         if type(file) == "string" then
            local opened, message = io.open(file, mode)
            if not opened then error(message, 2) end
            file = opened
         end
         chosen = file
         standard(file)
         return file
      end
   end
   own.output = default("output", "w", function(file)
      own.write = function(...) return file:write(...) end
      local close = io.close
      own.close = function(given) if given then return close(given) end return file:close() end
   end)
   own.input = default("input", "r", function(file)
      local lines = io.lines
      own.read = function(...) return file:read(...) end
      own.lines = function(name, ...) if name then return lines(name, ...) end return file:lines(...) end
   end)
end

-- A full collection looks through the memory of all users; one user's share of it is a step.
local collect = collectgarbage
local function collecting(option, ...)
   if option == nil or option == "collect" then
      collect("step", 100)
      return 0
   end
   return collect(option, ...)
end

-- Types are the state's: the first user declares them, and a user that declares one twice hears of it.
local declared, made = {}, {}
local cdef, metatype, typeof = ffi.cdef, ffi.metatype, ffi.typeof
local function declaring(own)
   local mine, types = {}, {}
   function own.cdef(text, ...)
      local known = select("#", ...) == 0 and declared[text] and not mine[text]
      if not known then cdef(text, ...) end
      declared[text], mine[text] = true, true
   end
   function own.metatype(kind, methods)
      local number = tonumber(typeof(kind))
      if types[number] or not made[number] then made[number] = metatype(kind, methods) end
      types[number] = true
      return made[number]
   end
end

local function make(path, cpath)
   local globals = copy(pristine)
   globals._G = globals
   local loaded = { _G = globals }
   for name, library in pairs(pristine) do
      if type(library) == "table" and name ~= "_G" then
         -- Strings find their methods in the table that is there.
         globals[name] = name == "string" and library or copy(library)
         loaded[name] = globals[name]
      end
   end
   for name, library in pairs(pristine.package.loaded) do
      if loaded[name] == nil then loaded[name] = library end
   end
   local package = {
      path = path, cpath = cpath, config = config, loaded = loaded, preload = copy(preload),
      loadlib = loadlib, searchpath = searchpath, seeall = seeall
   }
   package.loaders = loaders(package, globals)
   globals.package, loaded.package = package, package
   globals.require, globals.module = requiring(package), moduling(package, globals)
   globals.math.random, globals.math.randomseed = fresh_random()
   globals.collectgarbage = collecting
   choosing(globals.io)
   declaring(globals.ffi)
   return globals
end

return make, load_file
