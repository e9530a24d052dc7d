"""`python -m composite`: the command line."""

from composite.cli.main import main

if __name__ == "__main__":
    main(prog_name="composite")
