"""Everything read: files and formats, tables, columns of text, pairs, bitext, dictionaries."""
