"""Many agents in one program, and one agent on several devices."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import FAST, SMALL, Match, match, same

from lifedrift_jax import root_key
from train import loop, ppo, programs, sweep

pytestmark = pytest.mark.relaxed

CONFIG = ppo.filled_in(SMALL, match())
SEEDS = (3, 4, 5)


def many(exact):
    keys = jnp.stack([root_key(s) for s in SEEDS])
    hypers = programs.stacked([FAST] * len(SEEDS))
    devices = jax.local_devices()[:1]
    program = programs.many(keys, Match(), match(), CONFIG, hypers, devices, exact)
    return program, loop.run(program, CONFIG)


def one(tree, number):
    return jax.tree.map(lambda x: x[number], tree)


@pytest.fixture(scope="module")
def alone():
    return [loop.train(root_key(s), Match(), match(), CONFIG, FAST) for s in SEEDS]


def test_exact_agents_are_bit_equal_to_runs_alone(alone):
    _, result = many(exact=True)
    for number, expected in enumerate(alone):
        assert same(one(result, number), expected)


def test_agents_side_by_side_begin_equal_and_stay_close(alone):
    program, result = many(exact=False)
    start = program.start()
    for number, (seed, expected) in enumerate(zip(SEEDS, alone, strict=True)):
        first = ppo.init(root_key(seed), Match(), match(), CONFIG, FAST.checked())
        assert same(one(start, number).params, first.params)
        assert same(one(start, number).env_keys, first.env_keys)
        np.testing.assert_allclose(
            one(result, number).metrics.greedy.score.mean,
            expected.metrics.greedy.score.mean,
            atol=0.1,
        )


def test_devices_that_cannot_share_are_refused():
    given = (root_key(0), Match(), match())
    with pytest.raises(ValueError, match="num_envs is 8: use a multiple of 3 devices"):
        programs.split_envs(*given, CONFIG, FAST, [None] * 3)
    odd = replace(CONFIG, num_envs=4, num_steps=3, minibatches=4)
    with pytest.raises(ValueError, match="minibatches is 4: it must divide the 3 samples"):
        programs.split_envs(*given, odd, FAST, [None] * 4)


ON_DEVICES = """
import json, sys
sys.path[:0] = {paths!r}
import jax, numpy as np
from dataclasses import replace
from lifedrift_jax import root_key
from probes import FAST, SMALL, Match, match, same
from train import loop, ppo, programs, sweep
devices = jax.local_devices()
config = replace(SMALL, normalize_observations=True, total_updates=50, eval_every=25)
config = ppo.filled_in(config, match())
told = {{"devices": len(devices)}}

program = programs.split_envs(
    root_key(0), Match(), match(), config, FAST.checked(), devices
)
replicas = []
result = loop.run(program, config)
for leaf in jax.tree.leaves((result.state.params, result.state.optimizer, result.state.normalizer)):
    shards = [np.asarray(shard.data) for shard in leaf.addressable_shards]
    assert len(shards) == len(devices)
    replicas.append(all(np.array_equal(x, shards[0]) for x in shards))
told["replicas_equal"] = all(replicas)
told["finite"] = all(bool(np.isfinite(x).all()) for x in jax.tree.leaves(result.state.params))
told["score"] = float(result.metrics.greedy.score.mean[-1])
single = ppo.init(root_key(0), Match(), match(), config, FAST.checked())
start = program.start()
told["start_equal"] = same(start.params, single.params) and same(start.env_keys, single.env_keys)
told["again_equal"] = same(loop.run(program, config), result)

seen = {{}}
for count in (1, 4):
    agents = sweep.grid(FAST, range(6), {{}})
    plan = sweep.plan(Match(), match(), SMALL, agents, devices=devices[:count], exact=True)
    out = {folder!r} if count == 4 else None
    seen[count] = sweep.run(Match(), match(), SMALL, plan, out=out)
    told[f"chunk_size_{{count}}"] = plan.chunk_size
told["agents_equal"] = same(seen[1], seen[4])
print(json.dumps(told))
"""


@pytest.mark.slow
def test_on_four_devices_replicas_stay_equal_and_agents_keep_their_results(clean_environ, tmp_path):
    here = Path(__file__).parent
    paths = [str(here.parent), str(here.parents[1])]
    script = ON_DEVICES.format(paths=paths, folder=str(tmp_path))
    environ = clean_environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told.pop("score") > 0.9
    assert told == {
        "devices": 4,
        "replicas_equal": True,
        "finite": True,
        "start_equal": True,
        "again_equal": True,
        "chunk_size_1": 6,
        "chunk_size_4": 8,
        "agents_equal": True,
    }
    # What four devices have trained is read, and the same, where there is one.
    agents = sweep.grid(FAST, range(6), {})
    plan = sweep.plan(Match(), match(), SMALL, agents, exact=True)
    assert len(plan.devices) == 1
    here = sweep.run(Match(), match(), SMALL, plan)
    eight = replace(plan, chunk_size=8)
    assert same(sweep.restore(Match(), match(), SMALL, eight, tmp_path), here)
