"""Standard output as a terminal with colours and tables."""

from rich.console import Console


class Terminal(Console):
    """A rich console that lets a pipe without reader be known, where rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        """Let the exception that is being handled through."""
        raise BrokenPipeError
