"""Report kit: HTML pages, SVG charts and terminal tables, made from plain data of any command."""
