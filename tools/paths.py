"""The paths that a tool reads from its command line."""

import argparse
from pathlib import Path


def paths(description: str | None, **defaults: Path | None) -> list[Path]:
    """Return the paths in this order; those whose default is None must be given."""
    parser = argparse.ArgumentParser(description=description)
    for name, default in defaults.items():
        parser.add_argument(name, nargs="?" if default else None, type=Path, default=default)
    return list(vars(parser.parse_args()).values())
