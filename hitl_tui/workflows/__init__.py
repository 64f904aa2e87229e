"""Ready-made workflows, built from the public API alone: reading one is the best lesson in the engine."""
