-- The global `ffi`, whose `C` has the functions that sysbench exports, and Lua functions over them.
local sysbench, symbols, C, exported, declare_waiting, set_metatype, is_1_1 = ...
local ffi = ffi
local cdef = ffi.cdef

-- Types that scripts use in their own declarations.
cdef([[
typedef enum { SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_TRX, SB_CNT_ERROR, SB_CNT_RECONNECT, ]]
   .. (is_1_1 and "SB_CNT_BYTES_READ, SB_CNT_BYTES_WRITTEN, " or "") .. [[SB_CNT_MAX } sb_counter_type;
typedef enum { SB_ARG_TYPE_NULL, SB_ARG_TYPE_BOOL, SB_ARG_TYPE_INT, SB_ARG_TYPE_SIZE, SB_ARG_TYPE_DOUBLE,
   SB_ARG_TYPE_STRING, SB_ARG_TYPE_LIST, SB_ARG_TYPE_FILE, SB_ARG_TYPE_MAX } sb_arg_type_t;
typedef enum { DB_ERROR_NONE, DB_ERROR_IGNORABLE, DB_ERROR_FATAL } sql_error_t;
typedef enum { SQL_TYPE_NONE, SQL_TYPE_TINYINT, SQL_TYPE_SMALLINT, SQL_TYPE_INT, SQL_TYPE_BIGINT, SQL_TYPE_FLOAT,
   SQL_TYPE_DOUBLE, SQL_TYPE_TIME, SQL_TYPE_DATE, SQL_TYPE_DATETIME, SQL_TYPE_TIMESTAMP, SQL_TYPE_CHAR,
   SQL_TYPE_VARCHAR } sql_bind_type_t;
typedef struct histogram sb_histogram_t;
typedef struct { const char *name; const char *desc; char *value; sb_arg_type_t type;
   bool (*validate)(const char *, const char *); } sb_arg_t;
typedef struct { uint32_t len; const char *ptr; } sql_value;
typedef struct { void *ptr; sql_value *values; } sql_row;
typedef struct { sql_bind_type_t type; void *buffer; unsigned long *data_len; unsigned long max_len; char *is_null; } sql_bind;
typedef struct { const char *sname; const char *lname; const char opaque[?]; } sql_driver;
typedef struct { sql_error_t error; int sql_errno; const char *sql_state; const char *sql_errmsg; sql_driver *driver;
   const char opaque[?]; } sql_connection;
typedef struct { sql_connection *connection; const char opaque[?]; } sql_statement;
typedef struct { sb_counter_type counter; uint32_t nrows; uint32_t nfields; sql_statement *statement; void *ptr;
   sql_row row; } sql_result;
]])

-- `C` already has the functions that yield, as Lua functions: a function called through a C pointer cannot yield.
for name, symbol in pairs(symbols) do
   C[name] = ffi.cast(symbol[1], symbol[2])
end
local libraries = ffi.C
if not getmetatable(exported) then setmetatable(exported, { __index = libraries }) end
ffi.C = setmetatable(C, { __index = exported, __newindex = libraries })

-- Functions of sysbench that a script declares and that do not exist here. A library that the script has loaded may define
-- them.
local function refuse(name)
   local advice = "it is an internal function of sysbench"
   if name:find("^sb_get_") or name:find("^sb_opt") then advice = "use sysbench.opt" end
   if name:find("^log_") then advice = "use print" end
   rawset(C, name, function(...)
      local loaded, symbol = pcall(function() return libraries[name] end)
      if loaded then return symbol(...) end
      error(("ffi.C.%s is not available in dbdyno: %s"):format(name, advice), 2)
   end)
end

-- A script that declares one of these blocks its thread.
local waiting = { usleep = 1, sleep = 1, nanosleep = 1, clock_nanosleep = 1, poll = 1, ppoll = 1, select = 1, pselect = 1 }
function ffi.cdef(text, ...)
   if type(text) == "string" then
      for name in text:gmatch("([%a_][%w_]*)%s*%(") do
         if waiting[name] then
            declare_waiting()
         elseif name:find("^[sd]b_") or name:find("^log_") then
            if not rawget(C, name) and not rawget(exported, name) then refuse(name) end
         end
      end
   end
   return cdef(text, ...)
end

-- With the JIT, use C pointers: a compiled trace can call them but ends at a raw function. The interpreter calls raw
-- functions faster.
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
      error("a histogram must have at least one bucket, and 0 < min <= max", 2)
   end
   return ffi.gc(histogram, C.sb_histogram_delete)
end

-- Installed last: only calls of the script itself reach this function.
local metatype = ffi.metatype
function ffi.metatype(...)
   set_metatype()
   return metatype(...)
end
