"""A benchmark of a server that runs already."""

from __future__ import annotations

import asyncio
from pathlib import Path

from planner.domain import Observation, Outcome
from planner.errors import InputError, Problem
from planner.launch.bench import Bencher, BenchPlan
from planner.launch.client import CallError, ServerClient, run
from planner.launch.devices import driver_of
from planner.launch.host import LocalHost
from planner.launch.ledger import Ledger
from planner.launch.logwatch import LogWatch
from planner.launch.preflight import look
from planner.launch.progress import Ui
from planner.launch.records import Identity, new_observation
from planner.launch.session import interruptible

__all__ = ["bench_url", "check_url"]


def check_url(url: str) -> str:
    """A base URL without its last slash.

    Raises:
        InputError: it is none.
    """
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError([Problem("not the address of a server", field="URL", value=url, hint="http://host:30000")])
    return url.rstrip("/")


def bench_url(
    url: str,
    *,
    python: str,
    plan: BenchPlan,
    identity: Identity,
    ui: Ui,
    log: Path | None = None,
    ledger: Path | None = None,
    api_key: str | None = None,
) -> tuple[Observation, ...]:
    """Measures every cell and records it.

    Raises:
        InputError: a server that does not answer, a Python without the client, a file that is no ledger.
        JudgedError: the client failed.
        LedgerBusyError: the observations could not be recorded.
    """
    url = check_url(url)
    host = LocalHost()
    if log is not None and not log.is_file():
        raise InputError([Problem("there is no such log", file=str(log))])
    if ledger is not None:
        Ledger.refuse(ledger)
    modules = look(host, python, parse=False)["modules"]
    module = next((name for name, there in modules.items() if there), None)
    if module is None:
        raise InputError([Problem("has no benchmark client of SGLang", field="--python", value=python)])
    with interruptible():
        observations = run(_bench(url, python, module, plan, identity, ui, log, api_key))
    if ledger is not None:
        with Ledger(ledger, create=True) as opened:
            opened.append(observations)
    return observations


async def _bench(
    url: str,
    python: str,
    module: str,
    plan: BenchPlan,
    identity: Identity,
    ui: Ui,
    log: Path | None,
    api_key: str | None,
) -> tuple[Observation, ...]:
    async with ServerClient(url, api_key=api_key) as client:
        try:
            info = await client.get_json("/server_info", deadline_s=30.0)
        except CallError as error:
            raise InputError(f"no SGLang server at {url}: {error.detail}", "check the address") from None
        watch = None
        if log is not None:
            watch = LogWatch(log)
            await asyncio.to_thread(watch.read)
        bencher = Bencher(
            host=LocalHost(),
            python=python,
            module=module,
            base_url=url,
            client=client,
            plan=plan,
            ui=ui,
            info=info,
            log=watch,
        )
        results = await bencher.run()
    for note in bencher.notes:
        ui.say(note)
    if identity.model == "unknown":
        from dataclasses import replace

        identity = replace(identity, model=str(info.get("model_path") or "unknown"))
    base = new_observation(
        identity,
        target=None,
        engine_version=None,
        outcome=Outcome(cause="ok"),
        info=info,
        driver=driver_of(LocalHost()),
    )
    launched = str(info.get("launch_command") or "").split()
    return tuple(
        result.fill(new_id).replace(temperature=plan.dataset.temperature, argv=tuple(launched))
        for result, new_id in zip(results, _ids(base, len(results)), strict=True)
    )


def _ids(base: Observation, n: int) -> list[Observation]:
    """Copies with ids of their own."""
    return [base.replace(id=f"{base.id}-{number}") for number in range(n)]
