-- Returns a function that creates the globals of one user of a shared Lua state.
local pristine, new_random, load = ...
local error, type, tostring, tonumber, pairs, ipairs = error, type, tostring, tonumber, pairs, ipairs
local setmetatable, setfenv, select, newproxy, pcall = setmetatable, setfenv, select, newproxy, pcall
local concat, string, io, ffi, loadfile = table.concat, string, io, ffi, loadfile
local searchpath, loadlib, seeall, preload, config =
   package.searchpath, package.loadlib, package.seeall, package.preload, package.config
local loading = newproxy()

-- A file is read once for all users; `loadfile` returns the message if it cannot be read.
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

local function module_name(name)
   if type(name) == "number" then return tostring(name) end
   if type(name) == "string" then return name end
   error(("bad argument #1 to 'require' (string expected, got %s)"):format(name == nil and "no value" or type(name)), 3)
end

-- The loaders of `require` in Lua's order, for one user.
local function loaders(package, globals)
   local function path(field)
      local value = package[field]
      if type(value) ~= "string" then error(("'package.%s' must be a string"):format(field), 0) end
      return value
   end
   local function failed(name, file, message)
      error(("error loading module '%s' from file '%s':\n\t%s"):format(name, file, message), 0)
   end
   local function preloaded(name)
      local loader = package.preload[name]
      if loader == nil then return ("\n\tno field package.preload['%s']"):format(name) end
      local field = preload[name] == loader and name:match("^table%.(.+)$")
      if not field then return loader end
      -- LuaJIT also stores these modules in the global `table`.
      return function(...)
         local module = loader(...)
         globals.table[field] = module
         return module
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

local function require_function(package)
   return function(name)
      name = module_name(name)
      local loaded = package.loaded
      local module = loaded[name]
      if module then
         if module == loading then error(("loop or previous error loading module '%s'"):format(name), 2) end
         return module
      end
      if type(package.loaders) ~= "table" then error("'package.loaders' must be a table", 2) end
      local missing, loader = {}, nil
      for index = 1, math.huge do
         local look = package.loaders[index]
         if look == nil then error(("module '%s' not found:%s"):format(name, concat(missing)), 2) end
         loader = look(name)
         if type(loader) == "function" then break end
         if type(loader) == "string" then missing[#missing + 1] = loader end
      end
      loaded[name] = loading
      module = loader(name)
      if module ~= nil then loaded[name] = module end
      if loaded[name] == loading then loaded[name] = true end
      return loaded[name]
   end
end

-- `module` of Lua 5.1: the module's table becomes the environment of the caller.
local function module_function(package, globals)
   return function(name, ...)
      local module = package.loaded[name]
      if type(module) ~= "table" then
         module = globals
         for part in name:gmatch("[^.]+") do
            local inner = module[part]
            if inner == nil then
               inner = {}
               module[part] = inner
            elseif type(inner) ~= "table" then
               error(("name conflict for module '%s'"):format(name), 2)
            end
            module = inner
         end
         package.loaded[name] = module
      end
      if module._NAME == nil then
         module._M, module._NAME, module._PACKAGE = module, name, name:match("^(.*%.)") or ""
      end
      setfenv(2, module)
      for index = 1, select("#", ...) do
         (select(index, ...))(module)
      end
   end
end

-- `io.output` and `io.input` of one user.
local function set_default_files(io_table)
   local function default(name, mode, use)
      local standard, chosen = io[name], nil
      return function(file)
         if file == nil then return chosen or standard() end
         if type(file) == "string" then
            local opened, message = io.open(file, mode)
            if not opened then error(message, 2) end
            file = opened
         end
         chosen = file
         use(file)
         return file
      end
   end
   io_table.output = default("output", "w", function(file)
      io_table.write = function(...) return file:write(...) end
      local close = io.close
      io_table.close = function(other) if other then return close(other) end return file:close() end
   end)
   io_table.input = default("input", "r", function(file)
      local lines = io.lines
      io_table.read = function(...) return file:read(...) end
      io_table.lines = function(name, ...) if name then return lines(name, ...) end return file:lines(...) end
   end)
end

-- `collectgarbage` for scripts. A full collection would scan the memory of all users, so each call does one step.
local collect = collectgarbage
local function collect_step(option, ...)
   if option == nil or option == "collect" then
      collect("step", 100)
      return 0
   end
   return collect(option, ...)
end

-- Types belong to the Lua state. The first user's `ffi.cdef` declares them, and the same call of another user does nothing.
-- A user that declares a type twice gets LuaJIT's error.
local declared, metatypes = {}, {}
local cdef, metatype, typeof = ffi.cdef, ffi.metatype, ffi.typeof
local function set_declarations(ffi_table)
   local mine, types = {}, {}
   function ffi_table.cdef(text, ...)
      local known = select("#", ...) == 0 and declared[text] and not mine[text]
      if not known then cdef(text, ...) end
      declared[text], mine[text] = true, true
   end
   function ffi_table.metatype(kind, methods)
      local number = tonumber(typeof(kind))
      if types[number] or not metatypes[number] then metatypes[number] = metatype(kind, methods) end
      types[number] = true
      return metatypes[number]
   end
end

local function make(path, cpath)
   local globals = copy(pristine)
   globals._G = globals
   local loaded = { _G = globals }
   for name, library in pairs(pristine) do
      if type(library) == "table" and name ~= "_G" then
         -- Strings have their methods in the state's table.
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
   globals.require, globals.module = require_function(package), module_function(package, globals)
   globals.math.random, globals.math.randomseed = new_random()
   globals.collectgarbage = collect_step
   set_default_files(globals.io)
   set_declarations(globals.ffi)
   return globals
end

return make, load_file
