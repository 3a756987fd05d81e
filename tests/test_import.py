"""`import lifedrift_jax` is light: no JAX backend, no optional package."""

import os
import subprocess
import sys

import pytest

import lifedrift_jax

# Looking for devices fails on a platform that does not exist, so an import that succeeds
# there has started no backend and made no array.
NO_BACKEND = {"JAX_PLATFORMS": "no_such_platform"}
OPTIONAL = (
    "fastapi",
    "gymnasium",
    "gymnax",
    "matplotlib",
    "openai",
    "pandas",
    "pyarrow",
    "pydantic",
    "rich",
    "tyro",
    "yaml",
)


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)


def test_import_starts_no_backend():
    done = run("import lifedrift_jax; lifedrift_jax.registered()", **NO_BACKEND)
    assert done.returncode == 0, done.stderr


def test_a_started_backend_would_show():
    done = run("import lifedrift_jax; lifedrift_jax.root_key(0)", **NO_BACKEND)
    assert done.returncode != 0
    assert "no_such_platform" in done.stderr


def test_import_loads_no_optional_package_and_no_family():
    code = "import sys, lifedrift_jax; print(*sys.modules)"
    done = run(code)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "lifedrift_jax.core" in loaded
    assert not loaded & set(OPTIONAL)
    assert "lifedrift_jax.life_drift" not in loaded


def test_importing_a_family_starts_no_backend():
    done = run("import lifedrift_jax.life_drift", **NO_BACKEND)
    assert done.returncode == 0, done.stderr


def test_the_conformance_check_imports_without_a_backend_or_optional_package():
    code = "import sys, lifedrift_jax.testing; print(*sys.modules)"
    done = run(code, **NO_BACKEND)
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout.split()) & set(OPTIONAL)


def test_training_imports_without_a_backend_or_packages_beside_flax():
    code = "import sys, train.ppo, train.sweep, train.presets; print(*sys.modules)"
    done = run(code, **NO_BACKEND)
    assert done.returncode == 0, done.stderr
    light = {"gymnasium", "gymnax", "matplotlib", "pyarrow", "tensorboardX", "tyro"}
    assert not set(done.stdout.split()) & light  # flax itself loads rich, yaml and orbax


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        ("orbax", "from train.checkpoint import Checkpoints; Checkpoints(Path('x'))", "train"),
        ("matplotlib", "import train.plots", "plot"),
        (
            "tensorboardX",
            "from train.metrics import write_tensorboard as w; w(Path('x'), [])",
            "tensorboard",
        ),
    ],
)
def test_a_missing_extra_is_named_in_one_line(package, code, extra):
    done = run(f"import sys; sys.modules[{package!r}] = None; from pathlib import Path; {code}")
    assert done.returncode == 1
    assert f"pip install 'lifedrift_jax[{extra}]'" in done.stderr.splitlines()[-1]


def test_every_public_name_exists():
    missing = [name for name in lifedrift_jax.__all__ if not hasattr(lifedrift_jax, name)]
    assert not missing
