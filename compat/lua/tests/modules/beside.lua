return { name = 'beside' }
