"""What the paper ran, as data; running it; statistics, tables, figures and the report."""
