"""The screens, a module and a style sheet each."""
