"""Looked at on the host of the launch, by the server's own Python: standard library only, run as ``python -c SOURCE``.

Reads ``{"arguments": [...], "host": str, "port": int, "folders": [...], "modules": [...], "parse": bool}`` as JSON from
standard input and prints one line ``PROBE {...}``. Nothing is written and nothing is started.
"""

from __future__ import annotations

__all__ = ["main"]


def _parse(arguments: list[str]) -> dict[str, object]:
    """How the installed engine's parser takes the arguments."""
    import argparse
    import contextlib
    import io

    text = io.StringIO()
    try:
        with contextlib.redirect_stderr(text), contextlib.redirect_stdout(io.StringIO()):
            from sglang.srt.server_args import ServerArgs  # type: ignore[import-not-found]

            parser = argparse.ArgumentParser(prog="sglang.launch_server")
            ServerArgs.add_cli_args(parser)
            if "--config" not in arguments:
                parser.parse_args(arguments)
    except SystemExit as end:
        return {"ok": end.code in (0, None), "stderr": text.getvalue()[-2000:]}
    except ImportError as error:
        return {"ok": None, "stderr": f"{type(error).__name__}: {error}"}
    return {"ok": True, "stderr": ""}


def main() -> None:
    """Prints what it found."""
    import importlib.util
    import json
    import os
    import shutil
    import socket
    import sys

    order = json.loads(sys.stdin.read())
    modules: dict[str, bool] = {}
    found: dict[str, object] = {"python": sys.version.split()[0], "sglang": None, "modules": modules}
    try:
        from importlib.metadata import version

        found["sglang"] = version("sglang")
    except Exception as error:
        found["sglang_error"] = f"{type(error).__name__}: {error}"
    if importlib.util.find_spec("sglang") is not None:
        found["importable"] = True
        if found["sglang"] is None:
            found["sglang"] = "unknown"
        if order.get("parse"):
            found["parser"] = _parse(order["arguments"])
        for name in order.get("modules", ()):
            try:
                modules[name] = importlib.util.find_spec(name) is not None
            except (ImportError, AttributeError):
                modules[name] = False
    if order.get("port"):
        try:
            family = socket.getaddrinfo(order["host"], order["port"])[0][0]
            with socket.socket(family, socket.SOCK_STREAM) as test:
                test.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                test.bind((order["host"], order["port"]))
            found["port_free"] = True
        except OSError as error:
            found["port_free"] = False
            found["port_error"] = str(error)
    found["free_bytes"] = {
        folder: shutil.disk_usage(folder).free for folder in order.get("folders", ()) if os.path.isdir(folder)
    }
    print("PROBE " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
