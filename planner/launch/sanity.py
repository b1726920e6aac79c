"""Does a text look like text? For answers that cannot be checked: finds a broken model, not a wrong one."""

from __future__ import annotations

import unicodedata
from collections import Counter

__all__ = ["oddity"]

# Thresholds are assumed. They stand far from both sides: prose of 40 words has about 0.7 distinct words and no
# character above 0.2, a server whose draft and target disagree repeats one token or draws from every script.
MAX_ONE_CHARACTER_FRAC = 0.5
MIN_DISTINCT_WORD_FRAC = 0.15
MAX_ODD_CHARACTER_FRAC = 0.1
MAX_SCRIPTS = 3
_MIN_WORDS = 12
_MIN_CHARACTERS = 8


def oddity(text: str) -> str | None:
    """What is wrong with the look of an English continuation; None: nothing."""
    body = text.strip()
    if not body:
        return "empty"
    letters = [character for character in body if not character.isspace()]
    odd = sum(character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cn", "Co") for character in letters)
    if odd / len(letters) > MAX_ODD_CHARACTER_FRAC:
        return f"{odd} of {len(letters)} characters are not printable"
    if len(letters) >= _MIN_CHARACTERS:
        character, count = Counter(letters).most_common(1)[0]
        if count / len(letters) > MAX_ONE_CHARACTER_FRAC:
            return f"{count} of {len(letters)} characters are {character!r}"
    words = body.split()
    if len(words) >= _MIN_WORDS and len(set(words)) / len(words) < MIN_DISTINCT_WORD_FRAC:
        return f"{len(set(words))} different words of {len(words)}"
    scripts = {unicodedata.name(character, "?").split(" ")[0] for character in letters if character.isalpha()}
    if len(scripts) > MAX_SCRIPTS:
        return f"letters of {len(scripts)} scripts"
    return None
