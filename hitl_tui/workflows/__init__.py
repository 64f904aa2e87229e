"""Ready-made workflows, built only with the public API: reading one is a good introduction to the engine."""
