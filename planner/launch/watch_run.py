"""The loop of ``plan-config watch``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from planner.errors import InputError
from planner.launch.client import CallError, ServerClient
from planner.launch.metrics import Scrape, parse_metrics
from planner.launch.watch import Reading, Thresholds, Warn, judge

__all__ = ["watch_url"]


async def watch_url(
    url: str,
    *,
    thresholds: Thresholds,
    every_s: float,
    n_readings: int | None,
    show: Callable[[Reading], None],
    api_key: str | None = None,
) -> Reading:
    """Reads until interrupted or ``n_readings`` are shown. Returns the last reading.

    A service that stops answering is a warning, not the end: it may come back.

    Raises:
        InputError: the service cannot be reached at all, or has no /metrics.
    """
    async with ServerClient(url, api_key=api_key) as client:
        before = await _first(client, url)
        shown = 0
        while True:
            await asyncio.sleep(every_s)
            try:
                after = await _scrape(client)
            except CallError as error:
                reading = Reading(None, None, None, None, None, None, ((Warn.SILENT, error.detail),))
            else:
                reading, before = judge(before, after, thresholds), after
            show(reading)
            shown += 1
            if n_readings is not None and shown >= n_readings:
                return reading


async def _scrape(client: ServerClient) -> Scrape:
    text = await client.get_text("/metrics", deadline_s=15.0)
    return parse_metrics(text, taken_s=time.monotonic())


async def _first(client: ServerClient, url: str) -> Scrape:
    try:
        return await _scrape(client)
    except CallError as error:
        hint = "start the server with --enable-metrics" if error.status == 404 else "check the address"
        raise InputError(f"{url}: no metrics ({error.detail})", hint) from None
