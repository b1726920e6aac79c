"""Resolution of SGLang 0.5.23: the rules in the order in which the engine applies them.

Each module stands for one group of the engine's handlers (``srt/arg_groups``); sources name file and line of the wheel.
"""

from __future__ import annotations

__all__: list[str] = []
