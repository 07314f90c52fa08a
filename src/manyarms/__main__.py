"""`python -m manyarms`: the command line."""

from manyarms.cli.app import main

if __name__ == "__main__":
    main()
