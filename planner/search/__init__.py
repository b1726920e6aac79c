"""The space of candidates, its exact enumeration, and the explanation of the choice."""
