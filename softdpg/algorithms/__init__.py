"""The algorithms: smoothing, networks, the update, the classes and their registry."""
