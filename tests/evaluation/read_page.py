"""A page as a reader of HTML sees it, for tests of what it holds."""

from html.parser import HTMLParser

ALL = "noise natural map drift strength space learning tasks examples figures again".split()  # noqa: SIM905
VOID = {"meta", "link", "input", "img", "br"}


class Read(HTMLParser):
    """The page as a reader of HTML sees it; a tag that is not closed in order is an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[tuple[str, str]] = []
        self.sections: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "section":
            self.sections.append(dict(attrs)["id"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append((self.open[-1] if self.open else "", data))

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]

    @property
    def words(self) -> str:
        return " ".join(said for tag, said in self.text if tag not in ("style", "script"))
