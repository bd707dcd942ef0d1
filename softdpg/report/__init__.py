"""Reading runs, statistics, tables, figures and one page."""
