"""Resolution of SGLang 0.5.12.post1: the rules in the order in which ``ServerArgs.__post_init__`` applies them.

This version mutates its arguments in place; sources are lines of ``srt/server_args.py``.
"""

from __future__ import annotations

__all__: list[str] = []
