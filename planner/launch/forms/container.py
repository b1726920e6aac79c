"""A plan as a Docker container."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import InputError
from planner.launch.forms.base import FormState, Snapshot, must
from planner.launch.host import Completed, Host
from planner.launch.preflight import refuse_engine
from planner.launch.target import Target

__all__ = ["DockerForm", "run_argv"]


def run_argv(
    target: Target,
    *,
    image: str,
    name: str,
    gpus: str | None = "all",
    mounts: tuple[str, ...] = (),
    docker: str = "docker",
) -> list[str]:
    """``docker run`` for a plan. Host network and IPC: NCCL needs shared memory, the port is the plan's own."""
    argv = [docker, "run", "--detach", "--name", name, "--network", "host", "--ipc", "host"]
    argv += ["--ulimit", "memlock=-1", "--log-driver", "json-file"]
    if gpus is not None:
        argv += ["--gpus", gpus]
    for mount in mounts:
        argv += ["--volume", mount]
    for key, value in target.env:
        argv += ["--env", f"{key}={value}"]
    program = ("python3", *target.program[1:]) if target.python is not None else target.program
    return [*argv, image, *program, *target.arguments]


@dataclass(slots=True)
class DockerForm:
    """One container. The previous one of the same name is kept, stopped, until the new one is right."""

    target: Target
    host: Host
    image: str
    name: str = "sglang"
    gpus: str | None = "all"
    mounts: tuple[str, ...] = ()

    @property
    def previous(self) -> str:
        """Name of the kept container."""
        return f"{self.name}-previous"

    def _docker(self, *words: str, timeout_s: float = 120.0) -> Completed:
        return self.host.run(["docker", *words], timeout_s=timeout_s)

    def check(self) -> list[str]:
        """Whether docker answers and no roll-back of an earlier run is pending.

        Raises:
            InputError: it does not, or one is.
        """
        if self._docker("version", timeout_s=30.0).code != 0:
            raise InputError(f"docker on {self.host.name} does not answer", "start its daemon, or name another host")
        if self._inspect(self.previous) is not None:
            raise InputError(
                f"a container {self.previous!r} is left from an interrupted change",
                f"look at it, then `docker rm {self.previous}` or rename it back to {self.name!r}",
            )
        prefix = ("docker", "run", "--rm", "--interactive", "--network", "none", self.image)
        refuse_engine(self.target, self.host, prefix=prefix)
        return []

    def _inspect(self, name: str) -> list[str] | None:
        form = "{{.Id}} {{.State.Running}} {{.State.ExitCode}} {{.State.OOMKilled}} {{.State.Pid}}"
        done = self._docker("container", "inspect", "--format", form, name, timeout_s=30.0)
        return done.stdout.split() if done.code == 0 else None

    def snapshot(self) -> Snapshot:
        """Id of the present container and whether it runs."""
        found = self._inspect(self.name)
        return Snapshot(
            text=found[0] if found else None, was_running=bool(found) and found is not None and found[1] == "true"
        )

    def switch(self) -> None:
        """Sets the old container aside, then runs the new one."""
        if self._inspect(self.name) is not None:
            must(self._docker("stop", "--time", "60", self.name), f"docker stop {self.name}")
            must(self._docker("rename", self.name, self.previous), f"docker rename {self.name}")
        argv = run_argv(self.target, image=self.image, name=self.name, gpus=self.gpus, mounts=self.mounts)
        must(self.host.run(argv, timeout_s=600.0), f"docker run {self.image}")

    def restore(self, snapshot: Snapshot) -> None:
        """Removes the new container, gives the old one its name and its life back."""
        if self._inspect(self.previous) is None:
            # The switch did not get as far as setting it aside; only a container that is not the old one goes.
            found = self._inspect(self.name)
            if found is not None and found[0] != snapshot.text:
                self._docker("rm", "--force", self.name)
        else:
            self._docker("rm", "--force", self.name)
            must(self._docker("rename", self.previous, self.name), f"docker rename {self.previous}")
        if snapshot.was_running:
            must(self._docker("start", self.name), f"docker start {self.name}")

    def settle(self) -> None:
        """The old container goes."""
        if self._inspect(self.previous) is not None:
            self._docker("rm", "--force", self.previous)

    def state(self) -> FormState:
        """From ``docker container inspect``."""
        found = self._inspect(self.name)
        if found is None:
            return FormState(running=False, detail="no such container")
        detail = "killed by the kernel: out of memory" if found[3] == "true" else f"exit code {found[2]}"
        return FormState(running=found[1] == "true", pid=int(found[4]) or None, code=int(found[2]), detail=detail)

    def follow_argv(self) -> list[str]:
        """The container's output."""
        return ["docker", "logs", "--follow", "--since", "0m", self.name]
