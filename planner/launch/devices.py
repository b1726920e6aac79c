"""Power, clocks and driver of the GPUs, by ``nvidia-smi`` where there is one."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from planner.launch.host import Host, HostLostError, LocalHost

__all__ = ["DeviceLog", "DeviceReading", "driver_of", "sampled"]

_FIELDS = "power.draw,clocks.sm,temperature.gpu,utilization.gpu"


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """Means over the devices at one time."""

    power_w: float
    sm_clock_mhz: float
    temperature_c: float
    busy_frac: float


@dataclass(slots=True)
class DeviceLog:
    """Readings of one measurement."""

    readings: list[DeviceReading] = field(default_factory=list)

    def mean(self, name: str) -> float | None:
        """Mean of a field over the readings."""
        values = [float(getattr(reading, name)) for reading in self.readings]
        return sum(values) / len(values) if values else None


def parse_readings(text: str) -> DeviceReading | None:
    """One reading from the CSV of nvidia-smi; devices that do not report (``[N/A]``) are left out."""
    rows = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            rows.append([float(cell) for cell in line.split(",")])
    rows = [row for row in rows if len(row) == 4]
    if not rows:
        return None
    power, clock, heat, busy = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    return DeviceReading(power_w=power, sm_clock_mhz=clock, temperature_c=heat, busy_frac=busy / 100.0)


def driver_of(host: Host) -> str | None:
    """``NVIDIA B300 x8, driver 580.1`` or None without nvidia-smi."""
    if isinstance(host, LocalHost) and shutil.which("nvidia-smi") is None:
        return None
    try:
        done = host.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], timeout_s=20.0)
    except (OSError, HostLostError):
        return None
    rows = [line.split(",") for line in done.stdout.splitlines() if done.code == 0 and line.count(",") == 1]
    if not rows:
        return None
    return f"{rows[0][0].strip()} x{len(rows)}, driver {rows[0][1].strip()}"


@contextlib.asynccontextmanager
async def sampled(host: Host, *, visible: str | None = None, every_s: float = 1.0) -> AsyncIterator[DeviceLog]:
    """Reads the devices while the body runs. Without nvidia-smi the log stays empty.

    Args:
        host: only this machine is read.
        visible: the server's CUDA_VISIBLE_DEVICES; other devices of the machine are not read. None or empty: all.
        every_s: pause between readings.
    """
    log = DeviceLog()
    if not isinstance(host, LocalHost) or shutil.which("nvidia-smi") is None:
        yield log
        return
    task = asyncio.ensure_future(_sample(log, visible, every_s))
    try:
        yield log
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _sample(log: DeviceLog, visible: str | None, every_s: float) -> None:
    argv = ["nvidia-smi", f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"]
    if visible:
        argv += ["-i", visible]
    while True:
        process = await asyncio.create_subprocess_exec(
            *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        if (reading := parse_readings(output.decode())) is not None:
            log.readings.append(reading)
        await asyncio.sleep(every_s)
