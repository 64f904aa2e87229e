"""Whether a log agrees with itself, and whether its graph does the same again."""
