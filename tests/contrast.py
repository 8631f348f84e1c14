"""A script for a page: tag, text and contrast (WCAG 2) of every visible text."""

CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = (color) => {
    const [r, g, b] = rgba(color).map((part) => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (rgba(color)[3] === 255) return color;
    }
    return "white";
  };
  const found = [];
  for (const one of document.body.querySelectorAll("*")) {
    const text = [...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!text || !one.checkVisibility()) continue;
    if (one.closest(".skip, script, noscript, :disabled")) continue;
    const style = getComputedStyle(one);
    const [a, b] = [one.closest("svg") ? style.fill : style.color, ground(one)].map(light);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([one.tagName, one.textContent.trim(), contrast]);
  }
  return found;
}"""
