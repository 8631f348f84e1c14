// Examples: by a word or by their set.
const cards = [...document.querySelectorAll(".examples > li")];
if (cards.length) {
  const sets = [...new Set(cards.map((card) => card.dataset.set))];
  const choice = made("select", {});
  choice.setAttribute("aria-label", "Set");
  choice.append(new Option("all sets", ""), ...sets.map((name) => new Option(name, name)));
  const field = made("input", { type: "search", placeholder: "Find a word" });
  field.setAttribute("aria-label", "Find a word");
  const filter = () => {
    const wanted = field.value.toLowerCase();
    for (const more of document.querySelectorAll("#examples details")) {
      more.open = Boolean(wanted || choice.value);
    }
    for (const card of cards) {
      const text = card.querySelector(".sides").textContent.toLowerCase();
      card.hidden = !text.includes(wanted) || (choice.value && card.dataset.set !== choice.value);
    }
  };
  field.addEventListener("input", filter);
  choice.addEventListener("input", filter);
  tools(document.querySelector(".examples-group"), field, choice);
}
