"""Other ways to run the same plan: as a systemd unit or as a container, here or on another host over ssh."""

from __future__ import annotations

from planner.launch.forms.base import Form, FormState, Snapshot
from planner.launch.forms.change import deploy
from planner.launch.forms.container import DockerForm
from planner.launch.forms.unit import SystemdForm, unit_text

__all__ = ["DockerForm", "Form", "FormState", "Snapshot", "SystemdForm", "deploy", "unit_text"]
