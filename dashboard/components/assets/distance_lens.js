// While the pointer is on a mark of a chart, every mark takes the colour of its true cosine to it.
// The chart stays as it is: fills are changed in the page and put back when the pointer leaves.
// A click is reported too: while a chart is set to draw a lasso, it tells nobody of clicks.
const NEAREST = 5;

function colour(share, ramp) {
  let upper = 1;
  while (upper < ramp.length - 1 && ramp[upper][0] < share) upper += 1;
  const [from, low] = ramp[upper - 1];
  const [to, high] = ramp[upper];
  const part = Math.min(1, Math.max(0, (share - from) / Math.max(1e-9, to - from)));
  const mixed = [0, 1, 2].map((k) => Math.round(low[k] + (high[k] - low[k]) * part));
  return `rgb(${mixed.join(", ")})`;
}

function unpack(text) {
  const raw = atob(text);
  const found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) found[i] = raw.charCodeAt(i);
  return found;
}

function marks(chart) {
  // Paths of the trace "models", each with its place among the points of the trace.
  for (const trace of chart.querySelectorAll(".scatterlayer .trace")) {
    const datum = trace.__data__ && trace.__data__[0];
    if (datum && datum.trace && datum.trace.name === "models") {
      return [...trace.querySelectorAll(".points path.point")];
    }
  }
  return [];
}

function add(parent, tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  parentElement.querySelectorAll(".lens").forEach((old) => old.remove());
  const cosines = unpack(data.cosines);
  const n = data.names.length;
  const value = (a, b) => data.low + ((data.high - data.low) * cosines[a * n + b]) / 255;

  const root = add(parentElement, "div", "lens");
  const ends = add(root, "span", "ends");
  add(ends, "span", "", data.low.toFixed(2));
  const bar = add(ends, "span", "bar");
  const stops = data.ramp.map(([at, [r, g, b]]) => `rgb(${r}, ${g}, ${b}) ${at * 100}%`);
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  add(ends, "span", "", data.high.toFixed(2));
  const said = add(root, "span", "said", data.idle);

  const tell = (place) => {
    const others = [...Array(n).keys()].filter((k) => k !== place);
    others.sort((a, b) => cosines[place * n + b] - cosines[place * n + a]);
    said.replaceChildren();
    add(said, "b", "", data.names[place]);
    const near = others.slice(0, NEAREST).map((k) => `${data.names[k]} ${value(place, k).toFixed(2)}`);
    said.appendChild(document.createTextNode(` — nearest by cosine: ${near.join(", ")}`));
  };

  const restore = (chart) => {
    marks(chart).forEach((mark) => {
      if (mark.dataset.fill === undefined) return;
      mark.style.fill = mark.dataset.fill;
      mark.style.fillOpacity = mark.dataset.opacity;
      delete mark.dataset.fill;
    });
    said.textContent = data.idle;
  };

  const shade = (chart, place) => {
    marks(chart).forEach((mark, at) => {
      if (mark.dataset.fill === undefined) {
        mark.dataset.fill = mark.style.fill;
        mark.dataset.opacity = mark.style.fillOpacity;
      }
      const other = data.order[mark.__data__ && mark.__data__.i !== undefined ? mark.__data__.i : at];
      const share = other === place ? 1 : cosines[place * n + other] / 255;
      mark.style.fill = colour(share, data.ramp);
      mark.style.fillOpacity = "1";
    });
    tell(place);
  };

  let leaving = null;
  let held = null;
  const placeOf = (event) => {
    const point = event.points && event.points.find((p) => p.data && p.data.name === "models");
    if (!point) return undefined;
    return data.order[point.pointIndex !== undefined ? point.pointIndex : point.pointNumber];
  };
  const enter = (event) => {
    const place = placeOf(event);
    if (place === undefined || !held) return;
    clearTimeout(leaving);
    shade(held, place);
  };
  const click = (event) => {
    const place = placeOf(event);
    if (place !== undefined) setTriggerValue("clicked", { place });
  };
  const leave = () => {
    clearTimeout(leaving);
    leaving = setTimeout(() => held && restore(held), 120);
  };
  const ignore = () => {
    if (!held || typeof held.removeListener !== "function") return;
    held.removeListener("plotly_hover", enter);
    held.removeListener("plotly_unhover", leave);
    held.removeListener("plotly_click", click);
  };
  // A chart that is drawn anew forgets who listens, so it is told again and again.
  const listen = () => {
    ignore();
    held = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
    if (!held || typeof held.on !== "function") return;
    held.on("plotly_hover", enter);
    held.on("plotly_unhover", leave);
    held.on("plotly_click", click);
  };
  listen();
  const again = setInterval(listen, 400);

  return () => {
    clearInterval(again);
    clearTimeout(leaving);
    ignore();
    if (held) restore(held);
  };
}
