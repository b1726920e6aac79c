"""HTTP to the server: every call has one deadline for the whole answer, a size limit, and a named fault.

httpx is imported when a client is made. Calls are coroutines; :func:`run` runs one from synchronous code.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    import httpx

__all__ = ["CallError", "CallFault", "Generation", "ServerClient", "run"]

_T = TypeVar("_T")
ANSWER_LIMIT_BYTES = 64 * 1024**2
CONNECT_TIMEOUT_S = 3.0


class CallFault(StrEnum):
    """How a call failed."""

    REFUSED = "refused"
    """No connection."""
    SILENT = "silent"
    """Connected, but not one byte of an answer until the deadline."""
    SLOW = "slow"
    """Bytes came, but the answer was not complete at the deadline."""
    STATUS = "status"
    CUT = "cut"
    """The connection ended in the middle of the answer."""
    UNREADABLE = "unreadable"
    """Complete, but not what it must be."""


class CallError(Exception):
    """A call that failed."""

    def __init__(self, fault: CallFault, detail: str, *, status: int | None = None) -> None:
        super().__init__(f"{fault}: {detail}")
        self.fault = fault
        self.detail = detail
        self.status = status


@dataclass(frozen=True, slots=True)
class Generation:
    """One answer of /generate."""

    text: str
    prompt_tok: int
    completion_tok: int
    cached_tok: int | None
    verify_steps: int | None
    """Verify steps of this request (``spec_verify_ct``); None without speculation."""
    took_s: float
    finish: str = ""


@dataclass(slots=True)
class ServerClient:
    """A client of one server. Use with ``async with``."""

    base_url: str
    api_key: str | None = None
    n_503: int = 0
    """Answers with status 503 so far."""
    _http: httpx.AsyncClient | None = field(default=None, repr=False)

    async def __aenter__(self) -> Self:
        import httpx

        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        self._http = httpx.AsyncClient(
            base_url=self.base_url,
            headers=headers,
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._http is not None
        await self._http.aclose()

    async def call(
        self, method: str, path: str, *, deadline_s: float, body: Mapping[str, object] | None = None
    ) -> bytes:
        """The answer's body.

        Raises:
            CallError: no complete answer with status 2xx within ``deadline_s`` seconds.
        """
        import httpx

        assert self._http is not None
        received = bytearray()
        answered = False
        try:
            async with asyncio.timeout(deadline_s), self._http.stream(method, path, json=body) as answer:
                answered = True
                async for chunk in answer.aiter_bytes():
                    received += chunk
                    if len(received) > ANSWER_LIMIT_BYTES:
                        raise CallError(CallFault.UNREADABLE, f"more than {ANSWER_LIMIT_BYTES} bytes from {path}")
                status = answer.status_code
        except TimeoutError:
            fault = CallFault.SLOW if received or answered else CallFault.SILENT
            raise CallError(fault, f"{path}: {len(received)} bytes of an answer in {deadline_s:g} s") from None
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise CallError(CallFault.REFUSED, f"{path}: {error}") from None
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.DecodingError) as error:
            raise CallError(CallFault.CUT, f"{path}: {error or type(error).__name__}") from None
        if status == 503:
            self.n_503 += 1
        if not 200 <= status < 300:
            shown = bytes(received[:300]).decode("utf-8", "replace").strip()
            raise CallError(CallFault.STATUS, f"{path}: status {status} {shown}".rstrip(), status=status)
        return bytes(received)

    async def get_json(self, path: str, *, deadline_s: float) -> dict[str, Any]:
        """A JSON object.

        Raises:
            CallError: as :meth:`call`, or the body is not a JSON object.
        """
        return _object(path, await self.call("GET", path, deadline_s=deadline_s))

    async def get_text(self, path: str, *, deadline_s: float) -> str:
        """A text.

        Raises:
            CallError: as :meth:`call`.
        """
        return (await self.call("GET", path, deadline_s=deadline_s)).decode("utf-8", "replace")

    async def generate(
        self, prompt: str, *, max_new_tok: int, deadline_s: float, stop: Sequence[str] = (), ignore_eos: bool = False
    ) -> Generation:
        """One greedy generation by /generate.

        Raises:
            CallError: as :meth:`call`, or the answer lacks its text or counts.
        """
        sampling: dict[str, object] = {"temperature": 0, "max_new_tokens": max_new_tok, "ignore_eos": ignore_eos}
        if stop:
            sampling["stop"] = list(stop)
        start = time.monotonic()
        body = {"text": prompt, "sampling_params": sampling}
        answer = _object("/generate", await self.call("POST", "/generate", deadline_s=deadline_s, body=body))
        took_s = time.monotonic() - start
        meta = answer.get("meta_info")
        text = answer.get("text")
        if not isinstance(meta, dict) or not isinstance(text, str):
            raise CallError(CallFault.UNREADABLE, f"/generate: no text or meta_info in {sorted(answer)}")
        finish = meta.get("finish_reason")
        return Generation(
            text=text,
            prompt_tok=_count(meta, "prompt_tokens") or 0,
            completion_tok=_count(meta, "completion_tokens") or 0,
            cached_tok=_count(meta, "cached_tokens"),
            verify_steps=_count(meta, "spec_verify_ct"),
            took_s=took_s,
            finish=str(finish.get("type", "")) if isinstance(finish, dict) else "",
        )


def _object(path: str, body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError as error:
        raise CallError(CallFault.UNREADABLE, f"{path}: not JSON ({error})") from None
    if not isinstance(value, dict):
        raise CallError(CallFault.UNREADABLE, f"{path}: a JSON {type(value).__name__}, not an object")
    return value


def _count(meta: Mapping[str, object], key: str) -> int | None:
    value = meta.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def run(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine to its end from synchronous code."""
    return asyncio.run(coroutine)
