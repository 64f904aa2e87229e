"""From names and files to graphs and settings; nothing here is imported until it is needed."""
