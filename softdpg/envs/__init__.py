"""The paper's discrete-reward environments and the toy, registered with Gymnasium under ``softdpg/``."""


def register_envs() -> None:
    """Register every environment of the package with Gymnasium."""
