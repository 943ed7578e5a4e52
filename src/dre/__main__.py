"""``python -m dre`` is the command ``dre``."""

from dre.cli import main

if __name__ == "__main__":
    main()
