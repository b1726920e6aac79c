"""Hardware profiles: one GPU system a TOML file, every number with a source (see docs/profiles.md)."""
