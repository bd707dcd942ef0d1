"""What the updates report: to the logger, and to the user whose policy is stuck at the bounds."""

import warnings

from softdpg.algorithms.saving import SavedAlgorithm
from softdpg.algorithms.update import Metrics

_SATURATION_PATIENCE = 5_000  # updates with nearly all actions at a bound before the user is told
_SATURATION_CHECK = 1_000  # updates between two looks at it
_LOG_EVERY = 20  # updates between two looks at their results, for each of which the device has to be waited for


class LoggedAlgorithm(SavedAlgorithm):
    """SB3's log of an algorithm whose results stay on the device until somebody looks at them."""

    policy_delay: int
    _metrics: Metrics  # of the last update
    _logged_updates: int = 0
    _told_of_saturation: bool = False

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_metrics", "_logged_updates"]

    def dump_logs(self) -> None:
        """Write the log, with the results of the last update."""
        if self._n_updates:
            self._record_updates(at_once=True)
        super().dump_logs()

    def _record_updates(self, at_once: bool = False) -> None:
        """Give the results of the last update to the logger, so that callbacks find them in its ``name_to_value``.

        Losses have to be waited for: they are looked at every 20 updates, when the logger has none, and for the log.
        """
        if not hasattr(self, "_logger"):  # train() without learn()
            return
        self.logger.record("train/learning_rate", self.lr_schedule(self._current_progress_remaining))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        recent = self._n_updates - self._logged_updates < _LOG_EVERY and "train/q_mean" in self.logger.name_to_value
        if recent and not at_once:
            return
        self._logged_updates = self._n_updates
        for name, value in self._metrics.items():
            self.logger.record(f"train/{name}", float(value))

    def _warn_of_idle_steps(self, total_timesteps: int) -> None:
        if total_timesteps <= self.learning_starts:
            warnings.warn(
                f"nothing will be learned in {total_timesteps:,} steps: the first {self.learning_starts:,} are random "
                "(learning_starts)",
                stacklevel=5,  # the caller of learn
            )

    def _warn_of_saturation(self) -> None:
        # Every so often: the number has to be waited for.
        if self._told_of_saturation or self._n_updates % _SATURATION_CHECK >= max(self.gradient_steps, 1):
            return
        if self._metrics["saturated_updates"] * self.policy_delay >= _SATURATION_PATIENCE:
            self._told_of_saturation = True
            warnings.warn(
                f"more than 99 % of the actions have been at a bound for {_SATURATION_PATIENCE:,} updates: the policy "
                'has probably stopped learning. Likely causes: estimator="paper" where returns are negative '
                '(use estimator="centered"), a learning rate that is too high, or rewards of a very large scale '
                "(scale them, or use layer norm: policy_kwargs={'layer_norm': True})",
                stacklevel=2,
            )
