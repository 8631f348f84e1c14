"""Reports of any command as HTML pages, SVG charts and terminal tables, made from plain data."""
