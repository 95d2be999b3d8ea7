-- sysbench's database functions, for scripts that call them through `ffi.C`. They take and return the objects of
-- interface.lua. They do not raise errors: they return a null pointer or a number other than 0, and set the error fields of
-- the connection. The first call compiles this file.
local raw, update_error, prepare, statement, NULL = ...
local ffi = require("ffi")
local error, ipairs, pairs, pcall, select = error, ipairs, pairs, pcall, select
local max, tonumber, type, unpack = math.max, tonumber, type, unpack
local getfenv, cast, new = getfenv, ffi.cast, ffi.new

local C = {}

-- Returns `text`, a Lua string or `length` bytes in C, as a Lua string.
local function text_of(text, length)
   length = tonumber(length)
   if type(text) == "cdata" then return ffi.string(text, length) end
   if type(text) == "string" and length and length < #text then return text:sub(1, length) end
   return text
end

-- Returns 0, or 1 if the call failed.
local function return_code(self, failed)
   update_error(self)
   return failed and 1 or 0
end

-- Drivers and connections ------------------------------------------------------------------------------------------

function C.db_create(name)
   if name ~= nil then name = text_of(name) else name = nil end
   local ok, driver = pcall(getfenv(0).sysbench.sql.driver, name)
   return ok and driver or NULL
end

-- The garbage collector frees drivers.
function C.db_destroy()
   return 0
end

function C.db_connection_create(driver)
   local ok, made = pcall(driver.connect, driver)
   return ok and made or NULL
end

function C.db_connection_close(self)
   raw.disconnect(self)
   return 0
end

function C.db_connection_reconnect(self)
   return return_code(self, raw.reconnect(self) == false)
end

function C.db_connection_free(self)
   self.guard = nil
end

for _, step in pairs { "init", "next", "done" } do
   local call = raw["bulk_" .. step]
   C["db_bulk_insert_" .. step] = function(self, text, length)
      return return_code(self, call(self, text_of(text, length)) == false)
   end
end

-- Parameters: the values are in the script's memory, and are read at each execution ---------------------------------

local NUMBERS = {
   "const int8_t *", "const int16_t *", "const int32_t *", "const int64_t *", "const float *", "const double *"
}
-- Types of sysbench.sql.type.
local CHAR, VARCHAR = 11, 12
local LONGEST = 0x7fffffff

local function reader(bound)
   local kind, length, null = tonumber(bound.type), bound.data_len, bound.is_null
   local number, read = NUMBERS[kind], nil
   if number then
      local buffer = cast(number, bound.buffer)
      read = function() return buffer[0] end
   else
      local buffer = bound.buffer
      read = function() return ffi.string(buffer, length[0]) end
   end
   return function()
      if null ~= nil and null[0] ~= 0 then return nil end
      return read()
   end
end

local function same_types(binding, types)
   for index = 1, max(#binding.types, #types) do
      if binding.types[index] ~= types[index] then return false end
   end
   return true
end

local function types_of(binds, count)
   local types = {}
   for index = 1, count do
      local bound = binds[index - 1]
      local kind = tonumber(bound.type)
      if not NUMBERS[kind] and kind ~= CHAR and kind ~= VARCHAR then
         error("Unsupported argument type: " .. kind, 3)
      end
      if not NUMBERS[kind] and bound.data_len == nil then
         error(("parameter %d is a string without data_len"):format(index), 3)
      end
      types[index] = kind
   end
   return types
end

local function read_bound(self)
   local binding = self.bound
   if binding then
      for index, parameter in ipairs(binding.parameters) do raw.set(parameter, binding.readers[index]()) end
   end
end

-- The method `execute` of a statement whose parameters `db_bind_param` has bound.
local function execute(self)
   read_bound(self)
   return statement.execute(self)
end

function C.db_bind_param(self, binds, count)
   count = tonumber(count)
   local types, binding = types_of(binds, count), self.bound
   if not binding or not same_types(binding, types) then
      binding = { types = types, parameters = {}, readers = {} }
      for index, kind in ipairs(types) do
         binding.parameters[index] = statement.bind_create(self, kind, LONGEST)
      end
      statement.bind_param(self, unpack(binding.parameters))
   end
   for index = 1, count do binding.readers[index] = reader(binds[index - 1]) end
   self.bound, self.execute = binding, execute
   return 0
end

-- As in sysbench, columns of prepared statements cannot be fetched.
function C.db_bind_result()
   return 0
end

-- Statements and results -------------------------------------------------------------------------------------------

local function result_of(self, rows)
   update_error(self)
   return rows and self.result or NULL
end

function C.db_query(self, text, length)
   return result_of(self, raw.query(self, text_of(text, length)))
end

function C.db_prepare(self, text, length)
   return prepare(self, text_of(text, length)) or NULL
end

function C.db_execute(self)
   read_bound(self)
   return result_of(self.connection, raw.execute(self))
end

function C.db_close(self)
   return statement.close(self)
end

function C.db_free_results(result)
   return (result == nil or raw.free(result) == false) and 1 or 0
end

-- The row is valid until the next one is fetched.
function C.db_fetch_row(result)
   local columns = select(2, raw.result_numbers(result))
   local strings = raw.fetch_row(result)
   if not strings then return NULL end
   local values, row = new("sql_value[?]", columns), new("sql_row")
   for index = 1, columns do
      local text = strings[index]
      if text then
         values[index - 1].len, values[index - 1].ptr = #text, text
      end
   end
   row.values = values
   result.current_row = { values, strings }
   return row
end

-- The command line -------------------------------------------------------------------------------------------------

function C.sb_print_test_options()
   getfenv(0).sysbench.cmdline.print_test_options()
end

function C.sb_lua_set_test_args()
   error("ffi.C.sb_lua_set_test_args is not available in dbdyno: use sysbench.cmdline.options", 2)
end

-- sysbench 1.1 --------------------------------------------------------------------------------------------------------------

function C.db_more_results(self)
   return raw.more_results(self)
end

function C.db_next_result(self)
   return result_of(self, raw.next_result(self))
end

function C.db_stmt_next_result(self)
   return C.db_next_result(self.connection)
end

return C
