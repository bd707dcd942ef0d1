"""What mattered in a search, as a picture."""

import warnings
from pathlib import Path
from typing import Any


def draw_importance(study: Any, path: Path) -> Path | None:
    """Draw the importance of each hyperparameter (PED-ANOVA); None if the trials are too few or too alike to tell."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import optuna

    warnings.filterwarnings("ignore", category=UserWarning, module="optuna")  # of few trials; the caller says so
    try:
        shares = optuna.importance.get_param_importances(
            study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
        )
    except (ValueError, RuntimeError):
        return None
    if len(set(shares.values())) == 1 and len(shares) > 1:  # what PED-ANOVA says of trials that it cannot tell apart
        return None
    names = sorted(shares, key=shares.__getitem__)
    figure, axes = plt.subplots(figsize=(6, 0.6 + 0.32 * len(names)))
    axes.barh([name.replace("_", " ") for name in names], [shares[name] for name in names], color="#0072B2")
    axes.set_xlabel("share of the difference between good trials and all (PED-ANOVA)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
