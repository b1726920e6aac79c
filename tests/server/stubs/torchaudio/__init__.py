"""Stands for torchaudio, which the text-only CPU server imports and does not use."""

from hollow import hollow

__version__ = "0.0.0"
hollow(__name__)
