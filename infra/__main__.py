"""``python -m infra``: the same as ``specrack``; stacks call it this way."""

from infra.cli import main

if __name__ == "__main__":
    main()
