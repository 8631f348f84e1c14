"""The report kit: pages, charts and terminal tables from plain data of any lab."""
