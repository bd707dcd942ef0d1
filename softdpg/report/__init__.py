"""Tables, figures and one page from results."""
