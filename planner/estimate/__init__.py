"""Models: acceptance, step cost, memory, throughput. Arrays in, arrays out; nothing is decided here."""
