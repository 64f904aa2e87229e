"""What a person can do to a thread: each verb in a file of its own, and the tables of all actions."""
