-- Methods of drivers, connections, statements, parameters and results over the functions of calls.rs.
--
-- Users of one state share everything except the table that the last function returns; `getfenv(0)` has a user's globals.
-- Every object is a table whose [1] is its number. Functions of `raw` that call the server return true if there are rows,
-- nothing if there are none, and false if they failed.
local raw = ...
local ffi = require("ffi")
local error, type, setmetatable, select, unpack = error, type, setmetatable, select, unpack
local tostring, newproxy, getmetatable, getfenv = tostring, newproxy, getmetatable, getfenv
local execute, query, fetch_row = raw.execute, raw.query, raw.fetch_row

local NONE, FATAL, RESTART = 0, 2, 1

local function constant(name)
   return function() return name end
end

-- The result of a statement without rows. As in sysbench it is a null pointer: it equals nil, but is true in a condition.
ffi.cdef("struct dbdyno_no_result;")
local no_result = { __tostring = constant("<sql_result>") }
no_result.__index = {
   fetch_row = function() error("db_fetch_row() failed", 2) end,
   free = function() error("db_free_results() failed", 2) end
}
ffi.metatype("struct dbdyno_no_result", no_result)
local NULL = ffi.cast("struct dbdyno_no_result *", nil)

-- Errors ---------------------------------------------------------------------------------------------------------

local connection = {}

-- Number of connections of all users whose fields describe a failure. While it is 0, a successful statement does not read
-- its connection, which with many users is not cached.
local failures = 0

-- Sets the error fields of a connection. Called after a failed statement, and after a successful one if the fields describe
-- an earlier failure. `unnumbered` is the error class if there is no server error.
local function update_error(self, unnumbered)
   local class, errno, state, message = raw.last_error(self)
   if class == NONE then
      class, errno, state, message = unnumbered or NONE, 0, nil, nil
   end
   failures = failures + (class ~= NONE and 1 or 0) - (self.error ~= NONE and 1 or 0)
   self.error, self.sql_errno, self.sql_state, self.sql_errmsg = class, errno, state, message
end

-- Raises the error of the last call on this connection, at stack level `level` of the caller. An error that is not from the
-- server, for example that the connection is closed, is raised at `level_without`.
local function raise(self, text, level, level_without)
   update_error(self)
   local class, errno, state, message = self.error, self.sql_errno, self.sql_state, self.sql_errmsg
   if class == NONE then
      error("SQL API error", (level_without or level) + 1)
   end
   local described = {
      connection = self, query = text, sql_errno = errno, sql_state = state, sql_errmsg = message
   }
   local globals = getfenv(0)
   globals.errdesc = described
   if class == FATAL then
      local hook = globals.sysbench.hooks.sql_error_ignorable
      if type(hook) ~= "function" or not hook(described) then
         error(("SQL error, errno = %d, state = '%s': %s"):format(errno, state, message), level + 1)
      end
   end
   described.errcode = RESTART
   error(described, level + 1)
end

function connection:check_error(result, text)
   if result == nil and self.error ~= NONE then
      raise(self, text, 2)
   end
   return result
end

-- Drivers --------------------------------------------------------------------------------------------------------

local driver = {}
local driver_meta = { __index = driver, __tostring = constant("<sql_driver>") }
local connection_meta = { __index = connection, __tostring = constant("<sql_connection>") }
local result_meta

local function driver_of(drivers, name)
   name = name or raw.driver
   if raw.driver_error and name == raw.driver then
      raw.fatal(raw.driver_error)
      error("failed to initialize the DB driver", 2)
   end
   if (name == "mysql" or name == "pgsql") and name ~= raw.driver then
      raw.fatal(("this run uses the %s driver; to use another one, set --db-driver=%s"):format(raw.driver, name))
      error("failed to initialize the DB driver", 2)
   elseif name ~= raw.driver then
      raw.fatal(("invalid database driver name: '%s'"):format(tostring(name)))
      error("failed to initialize the DB driver", 2)
   end
   if not drivers[name] then
      raw.use_database()
      local long = name == "mysql" and "MySQL driver" or "PostgreSQL driver"
      drivers[name] = setmetatable({ driver_name = name, sname = name, lname = long }, driver_meta)
   end
   return drivers[name]
end

function driver:name()
   return self.driver_name
end

function driver:connect()
   local number, owner = raw.create()
   local new_connection = setmetatable({
      number, driver = self, error = NONE, sql_errno = 0
   }, connection_meta)
   if raw.connect(new_connection) == false then
      error(raw.connect_failed, 2)
   end
   new_connection.result = setmetatable({ number }, result_meta)
   -- Closes a connection that the script no longer references.
   new_connection.guard = newproxy(true)
   getmetatable(new_connection.guard).__gc = function() raw.release(owner, number) end
   return new_connection
end

-- Connections ----------------------------------------------------------------------------------------------------

function connection:disconnect()
   raw.disconnect(self)
   return true
end

function connection:reconnect()
   if raw.reconnect(self) == false then
      raise(self, "", 2)
   end
   return true
end

function connection:query(text)
   local rows = query(self, text)
   if rows == false then
      -- As in sysbench, an error that is not from the server is raised one stack level further out.
      raise(self, text, 2, 3)
   elseif failures > 0 and self.error ~= NONE then
      update_error(self)
   end
   return rows and self.result or NULL
end

function connection:query_row(text)
   local rows = query(self, text)
   if rows == false then
      raise(self, text, 2)
   elseif failures > 0 and self.error ~= NONE then
      update_error(self)
   end
   if not rows then
      return nil
   end
   local count, columns = raw.result_numbers(self)
   if count == 0 then
      return nil
   end
   local row = fetch_row(self)
   raw.free(self)
   return unpack(row, 1, columns)
end

local function bulk(name, call)
   local message = "db_bulk_insert_" .. name .. "() failed"
   return function(self, text)
      local failed = call(self, text) == false
      if failed or self.error ~= NONE then
         update_error(self)
      end
      if failed then
         error(message, 2)
      end
      return true, message
   end
end

connection.bulk_insert_init = bulk("init", raw.bulk_init)
connection.bulk_insert_next = bulk("next", raw.bulk_next)
connection.bulk_insert_done = bulk("done", raw.bulk_done)

-- Statements -----------------------------------------------------------------------------------------------------

local statement = {}
local statement_meta = { __index = statement, __tostring = constant("<sql_statement>") }
local parameter = { set = raw.set, set_rand_str = raw.set_random }
local parameter_meta = { __index = parameter, __tostring = constant("<sql_param>") }

-- Returns a statement, or nil if the server cannot prepare it. As in sysbench, that error has no number.
local function prepare(self, text)
   local number = raw.new_statement(self, text)
   if number then
      local prepared = setmetatable({ number, connection = self, result = self.result }, statement_meta)
      if raw.prepare(prepared) ~= false then
         return prepared
      end
      raw.remove_statement(prepared)
   end
   update_error(self, FATAL)
   return nil
end

function connection:prepare(text)
   local prepared = prepare(self, text)
   if not prepared then
      if raw.last_error(self) == NONE then
         error("SQL API error", 2)
      end
      raise(self, text, 2)
   end
   return prepared
end

function statement:bind_create(kind, length)
   local number = raw.new_parameter(self, kind, length)
   if not number then
      error("Unsupported argument type: " .. tostring(kind), 2)
   end
   return setmetatable({ number, type = kind }, parameter_meta)
end

function statement:bind_param(...)
   if select("#", ...) == 0 then
      return nil
   end
   raw.bind(self, ...)
   return 0
end

function statement:execute()
   local rows = execute(self)
   if rows == false then
      if raw.last_error(self.connection) == NONE then
         return NULL
      end
      raise(self.connection, "<prepared statement>", 2)
   elseif failures > 0 and self.connection.error ~= NONE then
      update_error(self.connection)
   end
   return rows and self.result or NULL
end

function statement:close()
   if self[1] then
      raw.close_statement(self)
      raw.remove_statement(self)
      self[1] = nil
   end
   return 0
end

-- Results --------------------------------------------------------------------------------------------------------

local result = {}
local numbers = { nrows = 1, nfields = 2, counter = 3 }

result_meta = {
   __tostring = constant("<sql_result>"),
   __index = function(self, key)
      local position = numbers[key]
      if position then
         return (select(position, raw.result_numbers(self)))
      end
      return result[key]
   end
}

function result:fetch_row()
   return fetch_row(self)
end

function result:free()
   if raw.free(self) == false then
      error("db_free_results() failed", 2)
   end
   return true, "db_free_results() failed"
end

-- Multiple result sets ------------------------------------------------------------------------------------------------

if raw.is_1_1 then
   function connection:more_results()
      return raw.more_results(self)
   end

   function connection:next_result()
      local rows = raw.next_result(self)
      if rows == false then
         raise(self, "", 2)
      end
      return rows and self.result or NULL
   end

   function statement:next_result()
      return connection.next_result(self.connection)
   end
end

-- Stubs of the functions of exported.lua, for `ffi.C`. The first call of a stub compiles exported.lua.
local exported, functions = {}, nil
for name in raw.exported:gmatch("%S+") do
   exported[name] = function(...)
      functions = functions or raw.compile_exported()(raw, update_error, prepare, statement, NULL)
      return functions[name](...)
   end
end

-- Creates the table of one user.
return function()
   local drivers = {}
   return {
      type = {
         NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6,
         TIME = 7, DATE = 8, DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12
      },
      error = { NONE = 0, IGNORABLE = 1, FATAL = 2 },
      driver = function(name) return driver_of(drivers, name) end
   }
end, exported
