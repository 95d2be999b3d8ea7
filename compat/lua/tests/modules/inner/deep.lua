return { name = 'deep in ' .. (...):match('^[^.]+') }
