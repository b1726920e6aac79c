"""Facts about SGLang versions: flag tables and release dates, and the reader of a wheel given by the user."""
