"""What humans do to a thread: input, answers, edits, forks, disclosure, other agents."""
