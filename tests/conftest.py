"""Strict switches for our own code, and the --slow option."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run slow tests at full size")


@pytest.fixture
def full_size(request) -> bool:
    """True under --slow: tests marked slow then run at full size, else reduced."""
    return request.config.getoption("--slow")


@pytest.fixture(autouse=True)
def strict(request):
    """Every implicit JAX convenience off, except in tests marked `relaxed` (peers, optax)."""
    if request.node.get_closest_marker("relaxed"):
        yield
        return
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture
def clean_environ() -> dict[str, str]:
    """Environment of a subprocess: ours, on CPU, without XLA flags."""
    return {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {"JAX_PLATFORMS": "cpu"}
