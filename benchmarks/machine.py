"""Where and with what a benchmark ran: what goes into its JSON beside the figures."""

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("lifedrift_jax", "jax", "jaxlib", "numpy", "gymnax")


def machine(packages: Sequence[str] = ()) -> dict[str, Any]:
    """Where this runs: processor, JAX device, versions (also of `packages`), commit, command."""
    return {
        "command": shlex.join(["python", os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]]),
        "commit": _output("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40"),
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "device": jax.devices()[0].device_kind,
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in (*PACKAGES, *packages)},
            "gcc": _output("gcc", "-dumpfullversion"),
        },
    }


def _output(*command: str) -> str | None:
    """What a command prints, or None if it fails or is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:
        return platform.processor()
    names = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
