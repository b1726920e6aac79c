"""Reads a log line by line (or block by block) into a :class:`Run`. Lines of which there are many are told apart by one
regular expression over a block; only lines that hold a trigger are matched against signatures, once for each form."""

from __future__ import annotations

import re

from planner.diagnose.catalogue import Role, Signature, markers, prefilter, signatures, traits
from planner.diagnose.events import NEAR_LINES, Block, Hit, Run
from planner.diagnose.facts import ALL_UP_TO, FACT_TRIGGERS, ONE_IN, FactReader, is_args_dump
from planner.diagnose.model import Phase
from planner.diagnose.text import clean, degenerate_answer, is_exception, is_plain, shown

__all__ = ["LogReader"]

MAX_KNOWN = 8192
_DIGITS = b"0123456789"
_ANSWER_TRIGGERS = (b'"content":', b'"text":', b"'text':", b"'content':", b'"content" :', b'"text" :')
_HEAD = rb"(?:[^\[\n]{0,100}\[[^\]\n]{0,100}\][: ]+){0,2}"
_LINES = re.compile(
    rb"\n(?:" + _HEAD + rb"(?:(Decode batch)|(Prefill batch)|"
    rb"(INFO: [^\n\"]{0,80}\"(?:GET|POST) [^\n\"]{1,300}\" 200)))?"
)
_DECODE, _PREFILL, _OK = 1, 2, 3
_EXCEPTION_ONLY_FACTOR = 0.75


class LogReader:
    """Feeds lines to the facts and to the current run. Line numbers start at 1."""

    def __init__(self) -> None:
        self.n_lines = 0
        self.n_blank = 0
        self.n_runs = 1
        self.run = Run(first_line=1)
        self.facts = FactReader()
        self.earlier: tuple[Run, FactReader] | None = None
        """The last run before this one that failed."""
        self._known: dict[bytes, tuple[tuple[Signature, ...], frozenset[str], bool]] = {}
        self._block = Block(id=0, line=1)
        self._n_blocks = 0
        self._chained = False
        self._in_traceback = False
        self._trigger = prefilter((*FACT_TRIGGERS, *_ANSWER_TRIGGERS, b"Error", b"Exception"))

    # -- input
    def feed(self, line: bytes) -> None:
        """One line without its newline."""
        self.feed_block(line)

    def feed_block(self, block: bytes) -> None:
        """Whole lines, without the last newline."""
        text = b"\n" + block
        run = self.run
        number = self.n_lines
        facts = self.facts
        for found in _LINES.finditer(text):
            number += 1
            kind = found.lastindex
            if kind == _OK:
                facts.n_ok += 1
                run.n_served += 1
                continue
            if kind == _DECODE:
                run.n_served += 1
                if facts.n_decode >= ALL_UP_TO and (facts.n_decode + 1) % ONE_IN:
                    facts.n_decode += 1
                    continue
                facts.decode(number, _line_at(text, found.start()))
                self._serving()
                continue
            if kind == _PREFILL:
                run.n_served += 1
                if facts.n_prefill >= ALL_UP_TO and (facts.n_prefill + 1) % ONE_IN:
                    facts.n_prefill += 1
                    continue
                facts.prefill(_line_at(text, found.start()))
                continue
            start = found.start() + 1
            end = text.find(b"\n", start)
            line = text[start:] if end < 0 else text[start:end]
            self.n_lines = number
            self._other(number, line)
            run, facts = self.run, self.facts
        self.n_lines = number

    # -- single lines
    def _other(self, number: int, raw: bytes) -> None:
        if not raw.strip():
            self.n_blank += 1
            return
        if b"\r" in raw:
            for part in filter(bytes.strip, raw.split(b"\r")):
                if b"Decode batch" in part:
                    self.facts.decode(number, clean(part))
                    self._serving()
                else:
                    self._other(number, part)
            return
        if len(raw) > 4096:
            self._examine(number, raw, None)
            return
        key = raw.translate(None, _DIGITS)
        known = self._known.get(key)
        if known is None:
            self._examine(number, raw, key)
            return
        hits, own, gated = known
        if own:
            self._note_traits(number, own)
        for signature in hits:
            if not self.run.seen_again(signature.id, self._block, number):
                self._hit(number, clean(raw), signature, own, gated)

    def _examine(self, number: int, raw: bytes, key: bytes | None) -> None:
        if self._trigger.search(raw) is None:
            self._remember(key, (), frozenset(), False)
            return
        text = clean(raw)
        if is_args_dump(text):
            if "server_args=" in text or "ServerArgs(" in text or "default args: {" in text or "LLM engine (v" in text:
                self._server_args(number, raw.decode("utf-8", "replace"))
                self.facts.other(number, text)
            elif "Finish: obj=" in text and self.run.degenerate is None and degenerate_answer(text):
                self.run.degenerate = shown(number, text)
            return
        own = self._traits(number, text)
        marked = self._markers(number, text)
        if any(trigger in raw for trigger in FACT_TRIGGERS):
            self.facts.other(number, text)
            marked = True
        if any(trigger in raw for trigger in _ANSWER_TRIGGERS):
            marked = True
            if self.run.degenerate is None and degenerate_answer(text):
                self.run.degenerate = shown(number, text)
        exception = is_exception(text)
        gated = not exception
        hits: tuple[Signature, ...] = ()
        if not text.lstrip().startswith('File "'):
            plain = exception or is_plain(text)
            hits = tuple(s for s in signatures() if s.matches(text) and (plain or not s.exception))
        for signature in hits:
            self._hit(number, text, signature, own, gated)
        if exception and not any(s.role is not Role.CONSEQUENCE for s in hits) and self._in_traceback:
            self._unknown_exception(number, text)
            marked = True
        if not marked:
            self._remember(key, hits, own, gated)

    def _remember(self, key: bytes | None, hits: tuple[Signature, ...], own: frozenset[str], gated: bool) -> None:
        if key is None:
            return
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[key] = (hits, own, gated)

    def _hit(self, number: int, text: str, signature: Signature, own: frozenset[str], gated: bool) -> None:
        run = self.run
        strength = signature.strength * (_EXCEPTION_ONLY_FACTOR if gated and signature.exception else 1.0)
        run.add(
            Hit(
                signature=signature,
                line=shown(number, text),
                phase=run.phase,
                in_capture=run.in_capture,
                block=self._block,
                own=own,
                near=frozenset(name for name, line in run.traits.items() if number - line <= NEAR_LINES),
                strength=strength,
                served_before=run.n_served,
            )
        )

    def _unknown_exception(self, number: int, text: str) -> None:
        run = self.run
        run.exception = shown(number, text)
        run.exception_phase = run.phase
        run.exception_in_capture = run.in_capture or "capture" in self._block.traits
        self._in_traceback = False

    def _traits(self, number: int, text: str) -> frozenset[str]:
        own = frozenset(trait.name for trait in traits() if trait.matches(text))
        if own:
            self._note_traits(number, own)
        return own

    def _note_traits(self, number: int, own: frozenset[str]) -> None:
        self._block.traits |= own
        for name in own:
            self.run.traits[name] = number

    def _markers(self, number: int, text: str) -> bool:
        seen = False
        for marker in markers():
            if marker.matches(text):
                seen = True
                self._event(number, text, marker.name)
        return seen

    # -- milestones
    def _event(self, number: int, text: str, event: str) -> None:
        run = self.run
        if event == "traceback":
            self._open_block(number)
        elif event == "chained":
            self._chained = True
        elif event == "fatal":
            run.last_fatal_line = number
            run.served_at_last_fatal = run.n_served
            if run.fatal_line is None:
                run.fatal_line = shown(number, text)
            if len(run.fatal_lines) < 100:
                run.fatal_lines.append(number)
        elif event == "capture-begin":
            run.n_capture_begun += 1
            run.phase = Phase.CAPTURE
        elif event == "capturing":
            if run.phase.rank < Phase.LISTENING.rank:
                run.phase = Phase.CAPTURE
        elif event == "capture-end":
            run.n_capture_ended += 1
            if run.n_capture_ended >= run.n_capture_begun and run.phase is Phase.CAPTURE:
                run.phase = Phase.CAPTURED
        elif event == "ready":
            run.ready_line = number
            run.first_ready_line = run.first_ready_line or number
            self._advance(Phase.READY)
        elif event == "serving":
            run.n_served += 1
            self._serving()
        elif event == "stopping":
            run.stopping_line = number
        else:
            self._advance(Phase(event))

    def _serving(self) -> None:
        if self.run.phase is not Phase.SERVING:
            self._advance(Phase.SERVING)

    def _advance(self, phase: Phase) -> None:
        if phase.rank > self.run.phase.rank or (phase.rank >= Phase.READY.rank and self.run.phase is Phase.CAPTURE):
            self.run.phase = phase

    def _open_block(self, number: int) -> None:
        self._in_traceback = True
        if self._chained:
            self._chained = False
            return
        self._n_blocks += 1
        self._block = Block(id=self._n_blocks, line=number, phase=self.run.phase)
        self.run.blocks.append(self._block)

    def _server_args(self, number: int, text: str) -> None:
        run = self.run
        if run.phase.rank >= Phase.LISTENING.rank or run.fatal_lines or run.stopping_line is not None:
            self._new_run(number)
        self.facts.server_args(text)
        self._advance(Phase.ARGUMENTS)

    def _new_run(self, number: int) -> None:
        if self.run.fatal_lines or any(hit.signature.role is Role.ROOT for hit in self.run.hits):
            self.earlier = (self.run, self.facts)
        version, engine = self.facts.version, self.facts.engine
        self.n_runs += 1
        self.run = Run(first_line=number)
        self.facts = FactReader()
        self.facts.version, self.facts.engine = version, engine
        self._n_blocks += 1
        self._block = Block(id=self._n_blocks, line=number)
        self._known.clear()


def _line_at(text: bytes, newline: int) -> str:
    end = text.find(b"\n", newline + 1)
    return (
        text[newline + 1 :].decode("utf-8", "replace")
        if end < 0
        else text[newline + 1 : end].decode("utf-8", "replace")
    )
