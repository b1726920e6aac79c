"""One process of the real engine for each version, for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.client import RealEngine, environment


@pytest.fixture(scope="session", params=["0.5.12.post1", "0.5.23"])
def engine(request: pytest.FixtureRequest) -> Iterator[RealEngine]:
    """The engine of a version. Its environment is made by tests/contract/make_env.py."""
    version: str = request.param
    if not environment(version).exists():
        message = f"no environment for SGLang {version}: python tests/contract/make_env.py"
        if "contract" in (request.config.option.markexpr or "").replace("not contract", ""):
            pytest.fail(message)
        pytest.skip(message)
    running = RealEngine(version)
    yield running
    running.close()
