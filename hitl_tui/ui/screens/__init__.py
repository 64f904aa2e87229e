"""The screens, each a module and a style sheet."""
