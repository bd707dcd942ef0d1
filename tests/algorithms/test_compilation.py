"""The compiler options are taken by this version of JAX, and left out by one that does not know them."""

import jax
import numpy as np
import pytest

from softdpg.algorithms.update import compiler_options


@pytest.fixture(autouse=True)
def ask_anew():
    compiler_options.cache_clear()
    yield
    compiler_options.cache_clear()


def test_products_are_left_to_eigen():
    @jax.jit
    def product(a, b):
        return a @ b

    a, b = np.ones((256, 400), np.float32), np.ones((400, 300), np.float32)
    text = product.lower(a, b).compile(compiler_options()).as_text()
    assert "ynn" not in text
    assert " dot(" in text


def test_an_option_that_jax_does_not_know_is_left_out(monkeypatch):
    jit = jax.jit

    def older(fun, compiler_options):
        return jit(fun, compiler_options={f"{name}_of_another_version": v for name, v in compiler_options.items()})

    monkeypatch.setattr(jax, "jit", older)
    assert compiler_options() is None
