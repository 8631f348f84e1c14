// Talking to the server: answers wait in the browser until they are stored, whatever happens.

export const $ = (id) => document.getElementById(id);
export const who = { review: null, reviewer: null };
const RETRY = 2000; // milliseconds

// What is kept in the browser.

export const kept = {
  read(name, other) {
    try { return JSON.parse(localStorage.getItem(name)) ?? other; } catch { return other; }
  },
  write(name, value) {
    try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* full or forbidden */ }
  },
  remove(name) {
    try { localStorage.removeItem(name); } catch { /* forbidden */ }
  },
  names(start) {
    try { return Object.keys(localStorage).filter((name) => name.startsWith(start)); }
    catch { return []; }
  },
};

// Requests.

export class Problem extends Error {
  constructor(reason) { super(reason); this.reason = reason; }
}

export async function ask(path, body) {
  const headers = { "X-Review": who.review ?? "", "X-Reviewer": who.reviewer ?? "" };
  const options = body === undefined ? { headers } : {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  let answer;
  let content;
  try {
    answer = await fetch(path, { ...options, signal: AbortSignal.timeout(15000) });
    content = await answer.json();
  } catch {
    throw new Problem("away");
  }
  if (!answer.ok) throw new Problem(content.reason ?? "away");
  return content;
}

// Do something until it works; for another review or reviewer only a reload helps.
export async function persist(work) {
  for (;;) {
    try {
      const found = await work();
      allWell();
      return found;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      tellProblem(problem.reason);
      if (!["away", "token", "file"].includes(problem.reason)) throw problem;
      await new Promise((resolve) => { setTimeout(resolve, RETRY); });
    }
  }
}

const STALE = {
  away: "The server does not answer. This page tries again by itself; if the server was stopped, " +
    "start it again with noisegen review serve.",
  token: "The server was started again and has a new token. Open the new address that it has " +
    "printed, in this browser; this page then goes on by itself.",
  file: "The server cannot use the review file just now: its disk may be full. This page tries " +
    "again by itself.",
  review: "The server now serves another review. Reload this page to review that one.",
  reviewer: "The review file was replaced and does not know you. Reload this page to begin again.",
};

export function tellProblem(reason) {
  const waiting = queue.length === 1 ? "1 answer is" : `${queue.length} answers are`;
  const unsent = queue.length
    ? ` ${waiting} not stored yet: kept in this browser and sent again as soon as that works.` : "";
  const told = (STALE[reason] ?? `The server refused this (${reason}). Reload the page.`) + unsent;
  if ($("banner").textContent !== told) $("banner").textContent = told;
  $("banner").hidden = false;
}

export function allWell() { $("banner").hidden = true; }

// Answers, each under a name of its own: another window of the browser may have some too.

let queue = [];
let sending = null;
const nameOf = (one) => `noisegen-review/${who.review}/${who.reviewer}/unsent/${one.nonce}`;

export function store(item, question, value) {
  const random = crypto.getRandomValues(new Uint32Array(4));
  const one = { item, question, value, nonce: Array.from(random).join("-"), at: Date.now() };
  queue.push(one);
  kept.write(nameOf(one), one);
  $("saved").textContent = "Saving …";
  send();
}

// Take up what an earlier page could not send; returns how many answers.
export function restore() {
  const names = kept.names(nameOf({ nonce: "" }));
  queue = names.map((name) => kept.read(name, null)).filter(Boolean).sort((a, b) => a.at - b.at);
  return queue.length;
}

export const unsent = () => [...queue];

// Resolves when nothing waits any more, or nothing can be done about it here.
export function send() {
  sending ??= drain().finally(() => { sending = null; });
  return sending;
}

async function drain() {
  try {
    const waiting = queue.length > 0;
    while (queue.length) {
      const [one] = queue;
      await persist(() => ask("/api/answers", one).catch(dropRefused));
      queue.shift();
      kept.remove(nameOf(one));
    }
    if (waiting) $("saved").textContent = "Saved";
  } catch {
    $("saved").textContent = "Not saved";
  }
}

// An answer that the review cannot take must not hold up the others.
function dropRefused(problem) {
  if (!["value", "item", "nonce", "json", "size"].includes(problem.reason)) throw problem;
}
