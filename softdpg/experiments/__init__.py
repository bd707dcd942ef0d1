"""Many runs at once: reproductions, benchmarks, hyperparameter searches and the toy, on one machine or a cluster."""
