"""Scripted stand-ins for ssh, systemctl, journalctl, docker and nvidia-smi.

Each is a small Python program put on PATH. State is kept in a folder, so that a test can look at it.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

__all__ = ["put_command"]

SSH = """
# Runs the command here, as sshd would: the words are joined and given to a shell.
import os, subprocess, sys
words = sys.argv[1:]
if os.environ.get("FAKE_SSH") == "unreachable":
    sys.exit("ssh: connect to host example port 22: Connection refused\\n") if False else (
        sys.stderr.write("ssh: connect to host example port 22: Connection refused\\n"), sys.exit(255))
command = words[words.index("--") + 2:]
with open(os.environ["FAKE_STATE"] + "/ssh.log", "a") as log:
    log.write(repr(words) + "\\n")
sys.exit(subprocess.run(["/bin/sh", "-c", " ".join(command)]).returncode)
"""

SYSTEMCTL = """
# One service manager: the unit's ExecStart is run as a process of this machine.
import json, os, pathlib, shlex, signal, subprocess, sys, time
state = pathlib.Path(os.environ["FAKE_STATE"]); record = state / "unit.json"
words = [word for word in sys.argv[1:] if word != "--user"]
with open(state / "systemctl.log", "a") as log:
    log.write(" ".join(words) + "\\n")
def pid():
    return json.loads(record.read_text())["pid"] if record.exists() else 0
def alive():
    try:
        return pid() and open(f"/proc/{pid()}/stat").read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
def stop():
    if alive():
        os.killpg(pid(), signal.SIGKILL)
        while alive():
            time.sleep(0.01)
    record.unlink(missing_ok=True)
if words[0] == "restart":
    stop()
    text = pathlib.Path(os.environ["FAKE_UNITS"], words[1]).read_text()
    env = dict(os.environ)
    for line in text.splitlines():
        line = line.replace("%%", "%")
        if line.startswith("Environment="):
            name, _, value = shlex.split(line.partition("=")[2])[0].partition("=")
            env[name] = value
        if line.startswith("ExecStart="):
            argv = shlex.split(line.partition("=")[2].replace("$$", "$"))
    with open(state / "journal.log", "ab") as out:
        child = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 start_new_session=True)
    record.write_text(json.dumps({"pid": child.pid}))
elif words[0] == "stop":
    stop()
elif words[0] == "show":
    on = alive()
    print(f"ActiveState={'active' if on else 'failed' if record.exists() else 'inactive'}")
    print(f"SubState={'running' if on else 'dead'}\\nMainPID={pid() if on else 0}\\nNRestarts=0")
    print("ExecMainStatus=1\\nResult=success")
"""

JOURNALCTL = """
import os, sys
os.execvp("tail", ["tail", "-n", "0", "-F", os.environ["FAKE_STATE"] + "/journal.log"])
"""

DOCKER = """
# Containers are processes of this machine; the image is this Python's environment.
import json, os, pathlib, shlex, signal, subprocess, sys, time
state = pathlib.Path(os.environ["FAKE_STATE"]); folder = state / "containers"; folder.mkdir(exist_ok=True)
words = sys.argv[1:]
with open(state / "docker.log", "a") as log:
    log.write(shlex.join(words) + "\\n")
def load(name):
    path = folder / name
    if not path.exists():
        sys.stderr.write(f"Error: No such container: {name}\\n"); sys.exit(1)
    return json.loads(path.read_text())
def alive(data):
    try:
        return bool(data["pid"]) and open(f"/proc/{data['pid']}/stat").read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
def halt(data):
    if alive(data):
        os.killpg(data["pid"], signal.SIGKILL)
        while alive(data):
            time.sleep(0.01)
def begin(name, data):
    with open(state / "docker-output.log", "ab") as out:
        child = subprocess.Popen(data["argv"], env={**os.environ, **data["env"]}, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=out, start_new_session=True)
    (folder / name).write_text(json.dumps({**data, "pid": child.pid}))
def split(words):
    env, name, i = {}, None, 0
    while words[i].startswith("-"):
        if words[i] in ("--rm", "--interactive", "--detach"):
            i += 1
            continue
        if words[i] == "--env":
            key, _, value = words[i + 1].partition("="); env[key] = value
        if words[i] == "--name":
            name = words[i + 1]
        i += 2
    return env, name, words[i], [sys.executable if w == "python3" else w for w in words[i + 1:]]
what = words[0]
if what == "run" and "--rm" in words:
    env, _, image, argv = split(words[1:])
    sys.exit(subprocess.run(argv, env={**os.environ, **env}).returncode)
elif what == "run":
    env, name, image, argv = split(words[1:])
    if image == "missing":
        sys.stderr.write("docker: manifest for missing not found\\n"); sys.exit(125)
    begin(name, {"id": f"id{time.monotonic_ns()}", "argv": argv, "env": env, "image": image})
elif what == "container":
    data = load(words[-1])
    print(data["id"], "true" if alive(data) else "false", 1, "false", data["pid"])
elif what == "stop":
    halt(load(words[-1]))
elif what == "start":
    begin(words[-1], load(words[-1]))
elif what == "rename":
    (folder / words[1]).rename(folder / words[2])
elif what == "rm":
    halt(load(words[-1])); (folder / words[-1]).unlink()
elif what == "logs":
    os.execvp("tail", ["tail", "-n", "0", "-F", str(state / "docker-output.log")])
"""

NVIDIA_SMI = """
import sys
if "driver_version" in sys.argv[1]:
    print("NVIDIA H200, 580.1\\nNVIDIA H200, 580.1")
else:
    rows = ["400.0, 1900, 60, 90", "440.0, 1800, 62, 100"]
    asked = sys.argv[sys.argv.index("-i") + 1].split(",") if "-i" in sys.argv else ["0", "1"]
    print("\\n".join(rows[int(number)] for number in asked))
"""

COMMANDS = {"ssh": SSH, "systemctl": SYSTEMCTL, "journalctl": JOURNALCTL, "docker": DOCKER, "nvidia-smi": NVIDIA_SMI}


def put_command(folder: Path, name: str) -> Path:
    """Writes the program ``name`` into ``folder``."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{COMMANDS[name]}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def on_path(folder: Path) -> str:
    """PATH with ``folder`` first."""
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
