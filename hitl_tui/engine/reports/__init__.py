"""What is told of threads and graphs, and changes nothing."""
