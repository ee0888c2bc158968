// Draws token strips from data. Text enters the page through textContent only.
const BLUE = { light: [0, 114, 178], dark: [86, 180, 233] };
const ORANGE = { light: [213, 94, 0], dark: [240, 145, 58] };
const TEAL = { light: [0, 128, 120], dark: [60, 178, 165] };

function isDark(element) {
  const colour = getComputedStyle(element).getPropertyValue("--st-background-color").trim();
  const hex = /^#([0-9a-f]{6})/i.exec(colour);
  const parts = hex
    ? [0, 2, 4].map((i) => parseInt(hex[1].slice(i, i + 2), 16))
    : (colour.match(/[\d.]+/g) || [255, 255, 255]).map(Number);
  return parts[0] * 0.3 + parts[1] * 0.59 + parts[2] * 0.11 < 128;
}

function shade(value, data, mode) {
  const strength = Math.min(1, Math.abs(value) / data.limit);
  if (!(strength > 0.004)) return "";
  const hue = data.scale === "signed" ? (value >= 0 ? BLUE : ORANGE) : TEAL;
  const [r, g, b] = hue[mode];
  return `rgba(${r}, ${g}, ${b}, ${(0.06 + 0.52 * strength).toFixed(3)})`;
}

function add(parent, tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
}

function write(element, text, glyphs, breaks) {
  // Whitespace and control characters as faint glyphs; a newline breaks the line if `breaks`.
  let plain = "";
  const flush = () => {
    if (plain) element.appendChild(document.createTextNode(plain));
    plain = "";
  };
  for (const character of text) {
    const control = character < " " || character === "\u007f";
    if (character === " " || !(character in glyphs || control)) {
      plain += character;
      continue;
    }
    flush();
    add(element, "span", "glyph", glyphs[character] || "\u2426");
    if (breaks && character === "\n") element.appendChild(document.createTextNode("\n"));
  }
  flush();
  if (text !== "" && text.trim() === "" && !text.includes("\n") && !text.includes("\t")) {
    element.textContent = "";
    add(element, "span", "glyph", "\u00b7".repeat(text.length));
  }
}

function mark(key, value) {
  // Marks the bar of the histogram that holds `value` (null clears).
  const chart = key && document.querySelector(`.st-key-${key}`);
  if (!chart) return;
  chart.querySelectorAll(".barlayer .point").forEach((bar) => {
    const path = bar.querySelector("path");
    const datum = bar.__data__;
    if (!path || !datum) return;
    const half = (datum.w !== undefined ? datum.w : Math.abs(datum.x1 - datum.x0)) / 2;
    const width = datum.trace && datum.trace.width ? datum.trace.width / 2 : half;
    const inside = value !== null && Math.abs(datum.p - value) <= width;
    if (path.dataset.fill === undefined) path.dataset.fill = path.style.fill;
    path.style.fill = inside ? "#D55E00" : path.dataset.fill;
    if (!inside) delete path.dataset.fill; // a redraw may have changed it meanwhile
  });
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const host = parentElement.host || parentElement;
  const mode = isDark(host) ? "dark" : "light";
  if (!parentElement.headwater) parentElement.headwater = { open: new Set(), shown: new Set() };
  const memory = parentElement.headwater;
  parentElement.querySelectorAll(".strips, .bubble").forEach((old) => old.remove());
  const root = add(parentElement, "div", data.strips.length === 1 ? "strips single" : "strips");
  const bubble = add(parentElement, "div", "bubble");

  const hover = (element, cell) => {
    const enter = () => {
      mark(data.histogram, cell.value);
      if (!cell.title) return;
      bubble.textContent = cell.title;
      bubble.style.display = "block";
      const box = element.getBoundingClientRect();
      bubble.style.left = `${Math.max(4, Math.min(box.left, window.innerWidth - 350))}px`;
      const above = box.top - bubble.offsetHeight - 6;
      bubble.style.top = `${above > 4 ? above : box.bottom + 6}px`;
    };
    const leave = () => {
      bubble.style.display = "none";
      mark(data.histogram, null);
    };
    element.addEventListener("mouseenter", enter);
    element.addEventListener("mouseleave", leave);
    element.addEventListener("focus", enter);
    element.addEventListener("blur", leave);
  };

  const drawTokens = (box, strip, name) => {
    box.replaceChildren();
    const cells = strip.cells;
    const focus = strip.focus === null ? 0 : strip.focus;
    const folded = data.fold > 0 && cells.length > data.fold && !memory.open.has(name);
    let from = 0;
    let to = cells.length;
    if (folded) {
      from = Math.max(0, Math.min(focus - Math.floor(data.fold * 0.7), cells.length - data.fold));
      to = Math.min(cells.length, from + data.fold);
    }
    const unfold = (count) => {
      const button = add(box, "button", "fold", `\u2026${count}`);
      button.title = `Show ${count} more tokens`;
      button.onclick = () => { memory.open.add(name); drawTokens(box, strip, name); };
    };
    if (from > 0) unfold(from);
    for (let i = from; i < to; i += 1) {
      const cell = cells[i];
      const position = cell.position === null ? i : cell.position;
      const classes = ["token"];
      if (data.selectable) classes.push("pick");
      if (strip.focus === i) classes.push("focus");
      if (strip.selected !== null && strip.selected === position) classes.push("chosen");
      if (data.scale === "signed" && cell.value < 0) classes.push("lowers");
      const element = add(box, "span", classes.join(" "));
      write(element, cell.text, data.glyphs, data.fold === 0);
      element.style.backgroundColor = shade(cell.value, data, mode);
      if (strip.spaced && cell.text !== "\n") box.appendChild(document.createTextNode(" "));
      hover(element, cell);
      if (data.selectable) {
        element.tabIndex = 0;
        element.setAttribute("role", "button");
        const click = () => setTriggerValue("clicked", { key: strip.key, position });
        element.onclick = click;
        element.onkeydown = (event) => {
          if (event.key === "Enter" || event.key === " ") { event.preventDefault(); click(); }
        };
      }
    }
    if (to < cells.length) unfold(cells.length - to);
  };

  data.strips.forEach((strip, index) => {
    const name = `${strip.key}/${index}/${strip.cells.length}/${strip.heading}`;
    if (strip.group) add(root, "div", "group", strip.group);
    const row = add(root, "div", "strip");
    if (strip.tag || strip.heading || strip.note || strip.link) {
      const head = add(row, "div", "head");
      if (strip.tag) add(head, "span", "tag", strip.tag);
      add(head, "span", "name", strip.heading).title = strip.heading;
      if (strip.note) add(head, "span", "note", strip.note);
      if (strip.link) {
        const button = add(head, "button", "", strip.link);
        button.onclick = () => setTriggerValue("clicked", { key: strip.key, position: null });
      }
    }
    const draw = () => {
      const box = add(row, "div", "tokens");
      box.setAttribute("dir", "auto");
      drawTokens(box, strip, name);
    };
    if (strip.masked && !memory.shown.has(name)) {
      const mask = add(row, "div", "mask");
      add(mask, "span", "", `Sensitive text, ${strip.cells.length} tokens, hidden.`);
      const button = add(mask, "button", "", "Reveal this one");
      button.onclick = () => { memory.shown.add(name); mask.remove(); draw(); };
    } else {
      draw();
    }
  });
  return () => mark(data.histogram, null);
}
