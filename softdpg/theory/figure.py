"""The figure of ``softdpg theory``: smoothing error against sigma beside its bound, log-log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from softdpg.theory import bellman_statements as bellman
from softdpg.theory.problems import random_finite, random_lqr, rule_for, sharp_reward

SIGMAS = np.geomspace(0.01, 1.0, 17)
# Okabe-Ito: distinguishable with colour vision deficiencies; line styles carry the same information in grey.
BLUE, ORANGE, GREEN, BLACK = "#0072B2", "#D55E00", "#009E73", "#000000"


def draw_errors(path: Path) -> Path:
    """Four panels: the bounds where they are sharp, on a smooth problem, LQR, and the policy gradient."""
    figure = Figure(figsize=(9.6, 7.4), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    _bounds(axes[0, 0], sharp_reward(), "(a) kink at the policy: 1 state, R = 2 - |a|")
    _bounds(axes[0, 1], random_finite(2), "(b) smooth: 3 states, R and P sinusoidal")
    _lqr(axes[1, 0])
    _gradients(axes[1, 1])
    for ax in axes.flat:
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.grid(True, which="major", color="0.88", linewidth=0.8)
        ax.legend(fontsize=8.5, framealpha=0.95)
    for ax in axes[1]:
        ax.set_xlabel("smoothing parameter $\\sigma$ (units of the action)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return path


def _bounds(ax: Axes, problem: bellman.FiniteProblem, title: str) -> None:
    curves = (
        ("bound on |V - V$_\\sigma$|, lemma 5.3", bellman.value_error_bound, "claimed", BLUE, "--"),
        ("|V - V$_\\sigma$|, largest over states", bellman.value_error_bound, "measured", BLUE, "-"),
        ("bound on |Q - Q$_\\sigma$|, lemma 5.5", bellman.q_error_bound, "claimed", ORANGE, (0, (1, 1))),
        ("|Q - Q$_\\sigma$|, largest over states, actions", bellman.q_error_bound, "measured", ORANGE, "-."),
    )
    for label, statement, side, color, style in curves:
        values = [getattr(statement(problem, sigma), side) for sigma in SIGMAS]
        ax.plot(SIGMAS, values, color=color, linestyle=style, linewidth=2, label=label)
    ax.set_title(title, fontsize=10.5, loc="left")
    ax.set_ylabel("error (discounted return)")


def _lqr(ax: Axes) -> None:
    problem = random_lqr(1)
    checks = [bellman.lqr_value_error(problem, sigma) for sigma in SIGMAS]
    ax.plot(
        SIGMAS,
        [c.claimed for c in checks],
        color=BLACK,
        linestyle=":",
        linewidth=2,
        label="closed form, O($\\sigma^2$)",
    )
    ax.plot(
        SIGMAS, [c.measured for c in checks], color=BLUE, linestyle="none", marker="o", markersize=5,
        label="|V - V$_\\sigma$|, the same in each state",
    )  # fmt: skip
    ax.set_title("(c) LQR: R unbounded, no bound of the paper applies", fontsize=10.5, loc="left")
    ax.set_ylabel("error (discounted return)")


def _gradients(ax: Axes) -> None:
    for name, problem, color, style in (
        ("finite, 3 states", random_finite(2), GREEN, "-"),
        ("LQR, 2 state dimensions", random_lqr(1), ORANGE, "--"),
    ):
        rule = rule_for(problem, 0.0)
        dpg = problem.dpg(problem.theta, rule)
        errors = [np.linalg.norm(problem.soft_dpg(problem.theta, s, rule) - dpg) for s in SIGMAS]
        ax.plot(SIGMAS, np.array(errors) / np.linalg.norm(dpg), color=color, linestyle=style, linewidth=2, label=name)
    ax.plot(SIGMAS, SIGMAS**2, color="0.5", linestyle=":", linewidth=1.5, label="slope 2")
    ax.set_title("(d) Soft-DPG to DPG, lemma 3.4", fontsize=10.5, loc="left")
    ax.set_ylabel("relative distance of the gradients")
