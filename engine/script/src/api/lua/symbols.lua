-- The global `ffi`, with a `C` that knows the functions which sysbench exports, and what is made of them.
local sysbench, symbols, C, waits, types, newer = ...
local ffi = ffi
local cdef = ffi.cdef

-- Types that scripts name in declarations of their own.
cdef([[
typedef enum { SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_TRX, SB_CNT_ERROR, SB_CNT_RECONNECT, ]]
   .. (newer and "SB_CNT_BYTES_READ, SB_CNT_BYTES_WRITTEN, " or "") .. [[SB_CNT_MAX } sb_counter_type;
typedef enum { SB_ARG_TYPE_NULL, SB_ARG_TYPE_BOOL, SB_ARG_TYPE_INT, SB_ARG_TYPE_SIZE, SB_ARG_TYPE_DOUBLE,
   SB_ARG_TYPE_STRING, SB_ARG_TYPE_LIST, SB_ARG_TYPE_FILE, SB_ARG_TYPE_MAX } sb_arg_type_t;
typedef enum { DB_ERROR_NONE, DB_ERROR_IGNORABLE, DB_ERROR_FATAL } sql_error_t;
typedef enum { SQL_TYPE_NONE, SQL_TYPE_TINYINT, SQL_TYPE_SMALLINT, SQL_TYPE_INT, SQL_TYPE_BIGINT, SQL_TYPE_FLOAT,
   SQL_TYPE_DOUBLE, SQL_TYPE_TIME, SQL_TYPE_DATE, SQL_TYPE_DATETIME, SQL_TYPE_TIMESTAMP, SQL_TYPE_CHAR,
   SQL_TYPE_VARCHAR } sql_bind_type_t;
typedef struct histogram sb_histogram_t;
]])

-- C comes with functions that leave the coroutine: no pointer could do that.
for name, symbol in pairs(symbols) do
   C[name] = ffi.cast(symbol[1], symbol[2])
end
local libraries = ffi.C
ffi.C = setmetatable(C, { __index = libraries, __newindex = libraries })

-- A script that declares one of these will make its thread wait.
local waiting = { usleep = 1, sleep = 1, nanosleep = 1, clock_nanosleep = 1, poll = 1, ppoll = 1, select = 1, pselect = 1 }
function ffi.cdef(text, ...)
   if type(text) == "string" then
      for name in text:gmatch("([%a_][%w_]*)%s*%(") do
         if waiting[name] then waits() end
      end
   end
   return cdef(text, ...)
end

-- Compiled traces take a pointer in their stride, and end at the functions that are faster in the interpreter.
if jit.status() then
   for _, name in ipairs { "default", "uniform", "gaussian", "pareto", "special", "zipfian" } do
      if sysbench.rand[name] then
         local draw = C["sb_rand_" .. name]
         sysbench.rand[name] = function(low, high) return draw(low, high) end
      end
   end
   for _, name in ipairs { "unique", "uniform_double" } do
      local draw = C["sb_rand_" .. name]
      sysbench.rand[name] = function() return draw() end
   end
end

function sysbench.rand.uniform_uint64()
   return C.sb_rand_uniform_uint64()
end

local methods = {}
function methods:update(value)
   C.sb_histogram_update(self, value)
end
function methods:print()
   C.sb_histogram_print(self)
end
ffi.metatype("sb_histogram_t", { __index = methods, __tostring = function() return "<sb_histogram>" end })

sysbench.histogram = {}
function sysbench.histogram.new(size, min, max)
   local histogram = C.sb_histogram_new(size, min, max)
   if histogram == nil then
      error("a histogram has at least one value, and 0 < min <= max", 2)
   end
   return ffi.gc(histogram, C.sb_histogram_delete)
end

-- What follows is the script's.
local metatype = ffi.metatype
function ffi.metatype(...)
   types()
   return metatype(...)
end
