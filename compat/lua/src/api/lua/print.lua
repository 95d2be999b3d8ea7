-- `print`. As in Lua each call uses the global `tostring`, which a script may replace.
local emit = ...
local select, type, rawget, getfenv, error, concat = select, type, rawget, getfenv, error, table.concat
return function(...)
   local tostring, words = rawget(getfenv(0), "tostring"), {}
   for index = 1, select("#", ...) do
      local word = tostring((select(index, ...)))
      if type(word) ~= "string" and type(word) ~= "number" then
         error("'tostring' must return a string to 'print'", 2)
      end
      words[index] = word
   end
   emit(concat(words, "\t") .. "\n")
end
