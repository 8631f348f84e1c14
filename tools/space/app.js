// The page: takes a text, asks the worker for its vectors, shows the nearest sentences of both encoders.
const NAMES = ["student", "teacher"];
const SHOWN = 5; // nearest sentences of each encoder
const WAIT = 200; // milliseconds after the last key
const $ = (id) => document.getElementById(id);

const content = async (path) => {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer;
};
const data = await (await content("data.json")).json();
const stored = {}; // name of an encoder -> vectors of data.texts, one after the other
for (const name of NAMES) {
  stored[name] = new Float32Array(await (await content(`${name}/vectors.bin`)).arrayBuffer());
}

const noisy = new Map(Object.entries(data.noisy)); // noisy text -> its clean sentence, its pieces

// Vectors by text, {text: {student, teacher}}: those of the build, and those that the worker sent.
const known = new Map();
data.texts.forEach((text, row) => {
  const part = (all) => all.subarray((row * all.length) / data.texts.length, ((row + 1) * all.length) / data.texts.length);
  known.set(text, Object.fromEntries(NAMES.map((name) => [name, unit(part(stored[name]))])));
});

function unit(vector) {
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}

// Return [cosine, sentence] of all sentences, the nearest first.
function nearest(name, text) {
  const vector = known.get(text)[name];
  const cosine = (sentence) => known.get(sentence)[name].reduce((sum, value, i) => sum + value * vector[i], 0);
  return data.sentences.map((sentence) => [cosine(sentence), sentence]).sort((a, b) => b[0] - a[0]);
}

function element(tag, text, given = {}) {
  return Object.assign(document.createElement(tag), { textContent: text }, given);
}

function show(text) {
  const clean = noisy.get(text)?.clean;
  const places = [];
  const cards = NAMES.map((name, number) => {
    const found = nearest(name, text);
    const card = element("article", "", { className: `card m${number + 1}`, id: name });
    const list = document.createElement("ol");
    for (const [cosine, sentence] of found.slice(0, SHOWN)) {
      const row = element("li", "", { className: sentence === clean ? "own" : "" });
      row.style.setProperty("--cosine", `${Math.max(0, cosine) * 100}%`);
      row.append(element("bdi", sentence), element("span", cosine.toFixed(2)));
      list.append(row);
    }
    const place = found.findIndex(([, sentence]) => sentence === clean);
    if (clean) places.push(`number ${place + 1} for the ${name} (${found[place][0].toFixed(2)})`);
    card.append(element("h2", data.titles[name]), list);
    return card;
  });
  $("told").textContent = clean ? `The edited sentence is ${places.join(", ")}.` : "";
  $("results").replaceChildren(...cards);
  $("results").dataset.text = text;
}

// Worker and its state.
const worker = new Worker("worker.js", { type: "module" });
let bytes = 0, sent = "";
worker.onmessage = ({ data: said }) => {
  if (said.error) $("state").textContent = `The encoders cannot be loaded: ${said.error}`;
  if (said.bytes) {
    bytes += said.bytes;
    $("state").textContent = loading();
  }
  if (said.ready) $("state").textContent = "";
  if (said.text !== undefined) {
    known.set(said.text, Object.fromEntries(NAMES.map((name) => [name, unit(said[name])])));
    if (said.text === typed()) show(said.text);
  }
};
worker.onerror = () => { $("state").textContent = "The encoders cannot be loaded in this browser."; };

function loading() {
  const [done, all] = [bytes, data.bytes].map((size) => Math.round(size / 1e6));
  return done < all ? `Loading the encoders: ${done} of ${all} MB` : "Starting the encoders …";
}

// Text box and buttons.
const typed = () => $("post").value.trim();
function update() {
  const text = typed();
  const { versions } = data.examples[$("sentence").value];
  for (const button of $("noise").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(versions[button.value].text === text));
  }
  const pieces = noisy.get(text)?.pieces ?? [];
  const drawn = pieces.map(([piece, changed]) => changed ? element("mark", piece, { className: "noisy" }) : piece);
  $("change").hidden = !pieces.length;
  $("change").querySelector("bdi").replaceChildren(...drawn);
  if (known.has(text)) {
    show(text);
  } else if (text && text !== sent) {
    sent = text;
    worker.postMessage(text);
  }
}

function choose(number) {
  $("post").value = data.examples[$("sentence").value].versions[number].text;
  update();
}

let timer = 0;
$("post").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(update, WAIT);
});
$("count").textContent = data.sentences.length;
data.examples.forEach((example, i) => $("sentence").append(element("option", example.clean, { value: i })));
data.examples[0].versions.forEach(({ name }, i) => {
  const button = element("button", name, { type: "button", value: i });
  button.addEventListener("click", () => choose(i));
  $("noise").append(button);
});
$("sentence").addEventListener("change", () => choose(1));
$("post").value = data.post;
$("state").textContent = loading();
update();
