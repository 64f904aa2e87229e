"""Plain text mode: the same threads and guards in lines, for screen readers, dumb terminals and pipes."""
