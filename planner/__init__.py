"""Safe SGLang launch configurations for speculative decoding."""
