"""Pages, charts and terminal tables from plain data, whatever they show."""
