-- The database functions of sysbench 0.5. Each user has one connection, opened when first used. The first call of a stub
-- (legacy.rs) compiles this file.
local sysbench = ...
local pcall, type, error = pcall, type, error

local db = {}
local connection

local function connect()
   if connection then return end
   local driver = sysbench.sql.driver()
   connection = driver:connect()
   db_driver = driver:name()
end

-- Returns the results of a pcall. An error gets 0.5's message and the line of the script's call, unless it is the table that
-- restarts the event.
local function check(name, succeeded, ...)
   if succeeded then return ... end
   local raised = ...
   if type(raised) == "table" then error(raised, 0) end
   error(name .. "() failed", 3)
end

local function check_text(name, text)
   if type(text) ~= "string" and type(text) ~= "number" then
      error(("bad argument #1 to '%s' (string expected, got %s)"):format(name, text == nil and "no value" or type(text)), 3)
   end
   return tostring(text)
end

db.connect = connect

function db.disconnect()
   if connection then
      connection:disconnect()
      connection = nil
   end
end

function db.query(text)
   text = check_text("db_query", text)
   connect()
   local result = check("db_query", pcall(connection.query, connection, text))
   if result ~= nil then result:free() end
end

for _, step in ipairs { "init", "next", "done" } do
   local method = "bulk_insert_" .. step
   local name = "db_" .. method
   db[method] = function(text)
      if step ~= "done" then text = check_text(name, text) end
      if step == "init" then connect() end
      if not connection then error(name .. "() failed", 2) end
      check(name, pcall(connection[method], connection, text))
   end
end

-- Statements and results are userdata without fields; this table has their objects.
local handles = setmetatable({}, { __mode = "k" })
local statement, result = newproxy(true), newproxy(true)

local function new(kind, object)
   local handle = newproxy(kind)
   handles[handle] = object
   return handle
end

local function object_of(handle, kind, name)
   local object = type(handle) == "userdata" and handles[handle]
   if not object or object.kind ~= kind then
      error(("bad argument #1 to '?' (%s expected, got %s)"):format(name, handle == nil and "no value" or type(handle)), 3)
   end
   return object
end

function db.prepare(text)
   text = check_text("db_prepare", text)
   connect()
   return new(statement, { kind = statement, statement = check("db_prepare", pcall(connection.prepare, connection, text)) })
end

-- The value's type at bind time decides: numbers become integers, strings character strings. Each execution reads the values
-- again from the same table; a string that has grown is bound again, and nil keeps the last value.
local function bind(state, values)
   local types, parameters = sysbench.sql.type, {}
   state.lengths = {}
   for index = 1, state.count do
      local value = values[index]
      local kind = type(value)
      if kind == "number" then
         parameters[index] = state.statement:bind_create(types.BIGINT)
      elseif kind == "string" then
         state.lengths[index] = math.max(#value, 1)
         parameters[index] = state.statement:bind_create(types.CHAR, state.lengths[index])
      else
         error("Unsupported variable type: " .. kind, 3)
      end
   end
   state.parameters = parameters
   if #parameters > 0 then state.statement:bind_param(unpack(parameters)) end
end

local function read_values(state)
   local values, lengths, converted = state.values, state.lengths, {}
   for index = 1, #state.parameters do
      local value = values[index]
      if value == nil then
         value = state.last and state.last[index]
      elseif lengths[index] then
         value = tostring(value)
      else
         value = tonumber(value) or 0
      end
      converted[index] = value
   end
   return converted
end

local function set_parameters(state)
   if not state.values then return end
   local values = read_values(state)
   for index, length in pairs(state.lengths) do
      if values[index] and #values[index] > length then
         bind(state, values)
         break
      end
   end
   for index, parameter in ipairs(state.parameters) do parameter:set(values[index]) end
   state.last = values
end

function db.bind_param(handle, values)
   local state = object_of(handle, statement, "sysbench.stmt")
   if type(values) ~= "table" then error("table was expected", 2) end
   if not state.statement then error("db_bind_param() failed: the statement is closed", 2) end
   state.values, state.count = values, #values
   bind(state, values)
end

-- sysbench cannot fetch columns of prepared statements either; only the type of the argument is checked.
function db.bind_result(handle, values)
   object_of(handle, statement, "sysbench.stmt")
   if type(values) ~= "table" then error("table was expected", 2) end
end

function db.execute(handle)
   local state = object_of(handle, statement, "sysbench.stmt")
   if not state.statement then error("db_execute() failed: the statement is closed", 2) end
   set_parameters(state)
   local executed = check("db_execute", pcall(state.statement.execute, state.statement))
   return new(result, { kind = result, result = executed })
end

function db.store_results(handle)
   object_of(handle, result, "sysbench.rs")
end

function db.free_results(handle)
   local state = object_of(handle, result, "sysbench.rs")
   if state.result ~= nil then state.result:free() end
   state.result = nil
end

function db.close(handle)
   local state = object_of(handle, statement, "sysbench.stmt")
   if state.statement then state.statement:close() end
   state.statement = nil
end

return db
