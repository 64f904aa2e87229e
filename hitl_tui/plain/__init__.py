"""Line mode: the same threads and guards in plain lines, for screen readers, dumb terminals and pipes."""
