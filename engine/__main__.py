"""`python -m engine` is the `headwater` command."""

from engine.cli import main


if __name__ == "__main__":
    main()
