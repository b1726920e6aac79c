"""Logs of an inference server -> the cause of its failure.

``diagnose_lines`` and ``diagnose_path`` read a whole log, :class:`Diagnoser` a log that is still growing. Causes and
signatures are data (``planner/data/diagnose``); judging them is code (``judge.py``). ``redact`` hides secrets.
"""

from __future__ import annotations

from planner.diagnose.diagnose import Diagnoser, diagnose_lines, diagnose_path, diagnose_stream
from planner.diagnose.model import (
    Confidence,
    DecodePoint,
    Diagnosis,
    LogFacts,
    LogLine,
    NotThis,
    Phase,
    SecondaryCause,
    SuggestedLimit,
)
from planner.diagnose.redact import redact, redact_argv

__all__ = [
    "Confidence",
    "DecodePoint",
    "Diagnoser",
    "Diagnosis",
    "LogFacts",
    "LogLine",
    "NotThis",
    "Phase",
    "SecondaryCause",
    "SuggestedLimit",
    "diagnose_lines",
    "diagnose_path",
    "diagnose_stream",
    "redact",
    "redact_argv",
]
