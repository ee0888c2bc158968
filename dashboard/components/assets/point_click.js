// Reports a click on a mark of a chart by the id that the mark carries in `customdata`.
// While a chart is set to draw a lasso, Streamlit tells nobody of clicks.

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const own = (parentElement.host || parentElement).closest('[data-testid="stElementContainer"]');
  if (own) own.style.display = "none"; // it shows nothing, so it takes no room

  let held = null;
  const click = (event) => {
    const point = event.points && event.points.find((p) => p.data && p.data.name === data.trace);
    const id = point && Number(point.customdata);
    if (Number.isInteger(id)) setTriggerValue("clicked", { id });
  };
  const leave = () => {
    if (held && typeof held.removeListener === "function") held.removeListener("plotly_click", click);
    held = null;
  };
  // A chart that is drawn anew forgets who listens, so it is told again and again.
  const listen = () => {
    leave();
    const chart = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
    if (!chart || typeof chart.on !== "function") return;
    held = chart;
    chart.on("plotly_click", click);
  };
  listen();
  const again = setInterval(listen, 400);

  return () => {
    clearInterval(again);
    leave();
  };
}
