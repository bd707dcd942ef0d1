"""``python -m softdpg`` is the command ``softdpg``."""

from softdpg.cli import main

main()
