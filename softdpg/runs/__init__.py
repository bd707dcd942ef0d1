"""One training run: settings, directory, seeding, training, checkpoints, evaluation, watching."""
