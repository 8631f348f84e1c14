// The page of a review: who reviews, one pair after the other, three questions, the keys.

import { $, Problem, allWell, ask, kept, persist, restore, send, store, tellProblem, unsent, who }
  from "/sending.js";

const page = { name: "", total: 0, complete: 0, item: null, langs: [] };
const whoKey = () => `noisegen-review/${who.review}/who`;

// Sections.

function showOnly(id) {
  for (const one of ["welcome", "review", "thanks"]) $(one).hidden = one !== id;
  $("progress-box").hidden = id === "welcome";
  $("who").textContent = id === "welcome" ? "" : `Reviewer: ${page.name}`;
}

function answer(question, value) {
  page.item.answers[question] = value;
  store(page.item.item, question, value);
  showProgress();
}

const isComplete = (item) => Boolean(item?.answers.realism && item.answers.meaning);

function showProgress() {
  if (page.item && !page.item.counted && isComplete(page.item)) {
    page.item.counted = true;
    page.complete += 1;
  }
  $("progress").max = page.total;
  $("progress").value = page.complete;
  $("progress-text").textContent = `${page.complete} of ${page.total} answered`;
}

// Welcome.

function welcome() {
  showOnly("welcome");
  $("langs-box").hidden = page.langs.length < 2;
  $("langs").replaceChildren(...page.langs.map((lang) =>
    choice("checkbox", "langs", lang, languageName(lang), true)));
  $("name").focus();
}

const languageNames = new Intl.DisplayNames(["en"], { type: "language" });
function languageName(lang) {
  try { return languageNames.of(lang); } catch { return lang; }
}

async function join(same) {
  const langs = [...$("langs").querySelectorAll(":checked")].map((box) => box.value);
  $("name-problem").textContent = "";
  if (page.langs.length > 1 && !langs.length) {
    $("name-problem").textContent = "Choose at least one language.";
    return;
  }
  try {
    const name = $("name").value;
    const made = await ask("/api/reviewers", { name, langs: page.langs.length > 1 ? langs : null, same });
    allWell();
    kept.write(whoKey(), made);
    await begin(made);
  } catch (problem) {
    if (problem.reason === "taken") return askIfSame();
    if (problem.reason === "name") $("name-problem").textContent = "Give a name of 1 to 60 characters.";
    else if (problem.reason === "full") $("name-problem").textContent = "The review has no room for more reviewers.";
    else tellProblem(problem.reason);
  }
}

function askIfSame() {
  $("join").hidden = true;
  $("taken").hidden = false;
  $("taken-title").textContent = `“${$("name").value.trim()}” has reviewed here. Is that you?`;
  $("taken-title").focus();
}

function chooseOther() {
  $("join").hidden = false;
  $("taken").hidden = true;
  $("name-problem").textContent = "Choose another name.";
  $("name").select();
}

// Items.

async function begin({ reviewer, name }) {
  who.reviewer = reviewer;
  page.name = name;
  const unsent = restore();
  await firstOpen();
  if (unsent) $("saved").textContent = `Saved ${unsent} kept from before`;
}

async function firstOpen() {
  await send();
  const state = await persist(() => ask("/api/state"));
  Object.assign(page, { total: state.total, complete: state.complete });
  await open(state.next);
}

let opening = false;

async function open(place) {
  if (opening) return;
  opening = true;
  try {
    if (place >= page.total) return await thank();
    // The answers are read before the request: one that is stored meanwhile may be in neither.
    const answers = unsent();
    const item = await persist(() => ask(`/api/items/${place}`));
    for (const one of answers.filter(({ item: of }) => of === item.item)) {
      item.answers[one.question] = one.value;
    }
    item.counted = isComplete(item);
    page.item = item;
    showItem(item);
  } catch (problem) { if (!(problem instanceof Problem)) throw problem; } finally { opening = false; }
}

function showItem(item) {
  showOnly("review");
  $("place").textContent = `Pair ${item.place + 1} of ${page.total}`;
  showText("clean", "del", item);
  showText("noisy", "ins", item);
  const what = item.slots ? "Are the intent and the slots unchanged?" : "Is the meaning unchanged?";
  $("meaning-question").textContent = `3. ${what}`;
  for (const box of $("answers").querySelectorAll("[type=radio]")) {
    box.checked = item.answers[box.name] === box.value;
  }
  showKinds(item.kinds);
  $("comment").value = item.answers.comment ?? "";
  $("back").disabled = item.place === 0;
  $("next").textContent = item.place + 1 < page.total ? "Next" : "Finish";
  showProgress();
  $("place").focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function showText(side, mark, item) {
  const parts = item[side].map(([differs, text]) => {
    const part = document.createElement(differs ? mark : "span");
    part.textContent = text;
    return part;
  });
  const empty = document.createElement("em");
  empty.textContent = "(empty)";
  $(side).lang = /^[a-z]{2,8}(-[a-z0-9]{1,8})*$/i.test(item.lang) ? item.lang : "";
  $(side).replaceChildren(...(parts.length ? parts : [empty]));
  const slots = item.slots?.[side === "clean" ? 0 : 1] ?? [];
  $(`${side}-slots`).hidden = !item.slots;
  $(`${side}-slots`).replaceChildren(...slots.flatMap(([label, text]) => [["dt", label], ["dd", text]])
    .map(([tag, text]) => Object.assign(document.createElement(tag), { textContent: text, dir: "auto" })));
}

function choice(type, name, value, text, checked, letter = "", hint = "") {
  const label = document.createElement("label");
  const box = Object.assign(document.createElement("input"), { type, name, value, checked });
  const key = Object.assign(document.createElement("kbd"), { textContent: letter });
  label.append(box, ...(letter ? [key] : []), text);
  label.title = hint;
  return label;
}

function showKinds(kinds) {
  page.item.kinds = kinds;
  const chosen = page.item.answers.kinds ?? [];
  const focused = document.activeElement?.name === "kinds" ? document.activeElement.value : null;
  $("kinds").replaceChildren(...kinds.map((kind) =>
    choice("checkbox", "kinds", kind.id, kind.name, chosen.includes(kind.id), kind.letter, kind.hint)));
  if (focused) $("kinds").querySelector(`[value="${focused}"]`)?.focus();
}

async function addKind() {
  const name = $("new-kind").value.trim();
  if (!name) return;
  const item = page.item;
  try {
    const kind = await ask("/api/kinds", { name });
    allWell();
    $("new-kind").value = "";
    if (page.item !== item) return;
    answer("kinds", [...new Set([...(item.answers.kinds ?? []), kind.id])]);
    showKinds([...item.kinds.filter((known) => known.id !== kind.id), kind]);
  } catch (problem) {
    if (problem.reason === "full") $("saved").textContent = "No room for another kind";
    else tellProblem(problem.reason);
  }
}

async function thank() {
  await send();
  const state = await persist(() => ask("/api/state"));
  Object.assign(page, { total: state.total, complete: state.complete, item: null });
  const open = state.total - state.complete;
  $("thanks-text").textContent = open
    ? `You have answered ${state.complete} of ${state.total} pairs; still open: ${open}.`
    : `You have answered all ${state.total} pairs. Every answer is stored; you can close this page.`;
  $("look-back").textContent = open ? "First unanswered" : "Look at my answers again";
  showOnly("thanks");
  showProgress();
  $("thanks-title").focus();
}

const lookBack = () => (page.complete < page.total ? firstOpen() : open(0));
const move = (step) => {
  if (page.item && page.item.place + step >= 0) open(page.item.place + step);
};

// Keys.

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const at = event.target;
  const writing = at.matches("textarea, input:not([type=radio], [type=checkbox])");
  if (event.key === "Escape" && writing) { at.blur(); $("place").focus(); return; }
  if (writing || !$("keys-on").checked) return;
  if (event.key === "?") { event.preventDefault(); help(); return; }
  if ($("review").hidden || !page.item) return;
  const own = at.matches("[type=radio]") && event.key.startsWith("Arrow");
  const button = at.matches("button, a") && event.key === "Enter";
  const act = own || button ? null : actionOf(event.key);
  if (act) { event.preventDefault(); act(); }
}

function actionOf(key) {
  const box = (name, value) => () => $("answers").querySelector(`[name=${name}][value="${value}"]`).click();
  const kind = page.item.kinds.find((one) => one.letter && one.letter === key.toLowerCase());
  return {
    1: box("realism", "realistic"), 2: box("realism", "moderate"), 3: box("realism", "unrealistic"),
    y: box("meaning", "yes"), n: box("meaning", "no"), u: box("meaning", "unsure"),
    Enter: () => move(1), ArrowRight: () => move(1), ArrowLeft: () => move(-1),
    "+": () => $("new-kind").focus(), "/": () => $("comment").focus(),
  }[key.length === 1 ? key.toLowerCase() : key] ?? (kind && box("kinds", kind.id));
}

function help() { $("help").showModal(); }

// Back to the pair, not to the button: the next Enter is meant for "next".
function leaveHelp() { if (!$("review").hidden) $("place").focus(); }

function useKeys() {
  document.body.classList.toggle("with-keys", $("keys-shown").checked && $("keys-on").checked);
  kept.write("noisegen-review/keys", { on: $("keys-on").checked, shown: $("keys-shown").checked });
}

// Wiring.

function changed(event) {
  const box = event.target;
  if (box.type === "radio") answer(box.name, box.value);
  if (box.name === "kinds") {
    answer("kinds", [...$("kinds").querySelectorAll(":checked")].map((one) => Number(one.value)));
  }
}

let typing;
function comment() {
  clearTimeout(typing);
  const item = page.item;
  typing = setTimeout(() => { if (page.item === item) storeComment(); }, 400);
}
function storeComment() {
  clearTimeout(typing);
  const text = $("comment").value;
  if (page.item && text !== (page.item.answers.comment ?? "")) answer("comment", text);
}

function wire() {
  $("join").addEventListener("submit", (event) => { event.preventDefault(); join(false); });
  $("answers").addEventListener("submit", (event) => event.preventDefault());
  $("answers").addEventListener("change", changed);
  $("comment").addEventListener("input", comment);
  $("comment").addEventListener("change", storeComment);
  window.addEventListener("pagehide", storeComment);
  $("new-kind").addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); addKind(); }
  });
  const clicks = {
    same: () => join(true), other: chooseOther, back: () => move(-1), next: () => move(1),
    "first-open": firstOpen, "look-back": lookBack, "add-kind": addKind, "help-button": help,
    "help-close": () => $("help").close(),
  };
  for (const [id, act] of Object.entries(clicks)) $(id).addEventListener("click", act);
  const keys = kept.read("noisegen-review/keys", { on: true, shown: false });
  $("keys-on").checked = keys.on;
  $("keys-shown").checked = keys.shown;
  for (const id of ["keys-on", "keys-shown"]) $(id).addEventListener("change", useKeys);
  useKeys();
  $("help").addEventListener("close", leaveHelp);
  document.addEventListener("keydown", press);
}

async function start() {
  history.replaceState(null, "", "/"); // the token is in the cookie now
  wire();
  const { review, langs } = await persist(() => ask("/api/review"));
  who.review = review;
  page.langs = langs;
  const known = kept.read(whoKey(), null);
  if (!known) return welcome();
  try {
    await begin(known);
  } catch (problem) {
    if (problem.reason !== "reviewer") throw problem;
    allWell();
    who.reviewer = null;
    welcome();
  }
}

start();
