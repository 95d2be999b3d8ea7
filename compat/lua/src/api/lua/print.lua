-- `print`. As in Lua each call uses the global `tostring`, which a script may replace.
local emit = ...
local select, type, rawget, getfenv, error, concat = select, type, rawget, getfenv, error, table.concat
return function(...)
   local tostring, texts = rawget(getfenv(0), "tostring"), {}
   for index = 1, select("#", ...) do
      local text = tostring((select(index, ...)))
      if type(text) ~= "string" and type(text) ~= "number" then
         error("'tostring' must return a string to 'print'", 2)
      end
      texts[index] = text
   end
   emit(concat(texts, "\t") .. "\n")
end
