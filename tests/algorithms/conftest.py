"""What several files of this folder start from."""

import pytest
from updates import random_batch


@pytest.fixture
def batch():
    return random_batch()
