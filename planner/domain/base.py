"""What every value of the domain is made of: an immutable pydantic base, a source for each number, an estimate."""

# Annotations are evaluated here, not kept as text: pydantic would compile each of them when the module is imported.

from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator

__all__ = ["Estimate", "Provenance", "Source", "SourceKind", "Sourced", "Value"]


class Value(BaseModel):
    """Immutable, hashable, refuses unknown keys, NaN and infinity. Variants come from :meth:`replace`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    def replace(self, **changes: Any) -> Self:
        """A copy with ``changes``, validated again (``model_copy`` would not validate).

        Raises:
            pydantic.ValidationError: the changed value breaks the type's rules.
        """
        fields = {name: getattr(self, name) for name in self.model_fields_set | changes.keys() if name not in changes}
        return type(self)(**fields, **changes)


class SourceKind(StrEnum):
    """How a number came to be known, strongest first."""

    MEASURED = "measured"
    DATASHEET = "datasheet"
    SOURCE_CODE = "source_code"
    VENDOR_RECIPE = "vendor_recipe"
    DERIVED = "derived"
    ASSUMED = "assumed"


class Source(Value):
    """Where one number (``field``) of a profile, limit or model comes from."""

    field: str
    """Name of the field it stands behind, or ``*`` for all fields not named by another source."""
    kind: SourceKind
    ref: str
    """A citation that a reader can follow: paper, file and line, field note, data sheet."""
    note: str | None = None


class Sourced(Value):
    """A value whose every number has a source; one source may stand for several by the field name ``*``."""

    sources: tuple[Source, ...]

    @model_validator(mode="after")
    def _every_number_has_a_source(self) -> Self:
        named = {source.field for source in self.sources}
        unknown = named - set(type(self).model_fields) - {"*"}
        if unknown:
            raise ValueError(f"sources name fields that do not exist: {', '.join(sorted(unknown))}")
        numbers = {
            name
            for name in self.model_fields_set - {"schema_version"}
            if isinstance(getattr(self, name), (int, float)) and not isinstance(getattr(self, name), bool)
        }
        missing = sorted(numbers - named) if "*" not in named else []
        if missing:
            raise ValueError(f"numbers without a source: {', '.join(missing)}; add a [[sources]] entry for each")
        return self


class Provenance(StrEnum):
    """Ground of an estimate, strongest first. A sum has the provenance of its weakest large part."""

    MEASURED = "measured"
    TABLE = "table"
    FITTED = "fitted"
    DATASHEET = "datasheet"
    DERIVED = "derived"
    ASSUMED = "assumed"


class Estimate(Value):
    """A predicted number with its 90 % interval. The unit is in the name of the field that holds it."""

    value: float
    low: float
    """5 % quantile."""
    high: float
    """95 % quantile."""
    provenance: Provenance
    extrapolated: bool = False
    """True when the question lies outside the data behind the model; the interval is widened accordingly."""
    note: str | None = None
    """What the number rests on, in a few words."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"an estimate needs low <= value <= high, got {self.low}, {self.value}, {self.high}")
        return self
