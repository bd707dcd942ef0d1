"""The paper's mathematics as numbers: problems solved exactly, and each statement as a claim and a measurement.

Everything is float64 NumPy. ``finite`` and ``lqr`` hold the two families of problems, ``problems`` draws them,
``smoothing_statements``, ``bellman_statements`` and ``gradient_statements`` hold the statements, ``counterexamples``
those that fail as written, each beside the form that holds, ``sweep`` runs them all.
"""
