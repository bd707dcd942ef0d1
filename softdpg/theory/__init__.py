"""The paper's mathematics as numbers: problems solved exactly, and each statement as a claim and a measurement.

Everything is float64 NumPy. ``finite`` and ``lqr`` hold the two families of problems, ``problems`` makes them.
``smoothing_statements``, ``bellman_statements`` and ``gradient_statements`` hold the statements. ``counterexamples``
holds those that fail as written, each beside the form that holds. ``check`` compares the two sides of a statement and
derives the tolerance, ``sweep`` runs all statements, ``report`` prints them.
"""
