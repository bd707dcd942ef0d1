"""The paper's algorithms and hyperparameter table, and the evaluation protocol, which is ours."""

# The algorithms that the paper compares, and the one that the others are compared with.
BASELINE = "ddpg"
METHOD = "soft-ddpg"
PAPER_ALGORITHMS = (BASELINE, METHOD)
# Those and our estimator of the method's gradient: what the small studies (toy, demo) show side by side.
STUDY_ALGORITHMS = (*PAPER_ALGORITHMS, "soft-ddpg-centered")

# The hyperparameter table. Keys are those of the registry; what the table leaves open (exploration noise, warm-up,
# critic layout) has its default there.
SIGMA = 0.2
N_SAMPLES = 50
TOTAL_TIMESTEPS = 1_000_000
HYPERPARAMETERS: dict[str, float | int | tuple[int, ...]] = {
    "gamma": 0.99,
    "batch_size": 256,
    "tau": 0.005,
    "learning_rate": 1e-4,  # actor
    "qf_learning_rate": 1e-4,  # critic
    "buffer_size": 1_000_000,
    "net_arch": (400, 300),
}
SEEDS = 5

# The paper does not state its evaluation protocol; this one is ours. A seed's final score is the mean over the
# last tenth of its evaluations.
EVALUATION_EVERY = 5_000
EVALUATION_EPISODES = 10
FINAL_FRACTION = 0.1
