"""Start a plan on a real server, watch it, judge it, measure it, stop it, record it. Plans nothing.

Import the module that is needed; nothing is loaded here, so that the parts that run as small processes start fast.
"""

from __future__ import annotations

__all__: list[str] = []
