"""`python -m hitl_tui` is the same as `hitl-tui`."""

from hitl_tui.cli.main import main

if __name__ == "__main__":
    main()
