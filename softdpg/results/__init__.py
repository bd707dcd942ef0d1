"""Reading runs back: records, cells, statistics."""
