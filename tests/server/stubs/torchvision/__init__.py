"""Stands for torchvision, which the text-only CPU server imports and does not use."""

from hollow import hollow

__version__ = "0.0.0"
hollow(__name__)

import torchvision.transforms  # noqa: E402


class InterpolationMode:
    """Names that configurations mention."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    LANCZOS = "lanczos"
    BOX = "box"
    HAMMING = "hamming"
    NEAREST_EXACT = "nearest-exact"


torchvision.transforms.InterpolationMode = InterpolationMode
